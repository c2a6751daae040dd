import { expect } from 'bun:test';
import { parseUuid, type Uuid } from '../../src/domain/id.ts';
import { parseScopes } from '../../src/domain/principal.ts';
import type { Service } from '../support/service.ts';
import { linkOf } from '../support/signed_in.ts';
import { RAN, type View, type Visit, visit, WIDE } from './visits.ts';

export const READING = 'realms:read profiles:read users:read profile-infos:read changes:read';
export const WRITING = `${READING} realms:write profiles:write users:write profile-infos:write`;

interface SignedIn {
  readonly scope?: string;
  /** IDs of the realms it is limited to. */
  readonly realms?: readonly string[];
  readonly view?: View;
  /** Instead of that of a new client. */
  readonly token?: string;
}

/** A window in which somebody with this scope is signed in, as after a reload, at this place of the console. */
export async function signedIn(
  service: Pick<Service, 'url' | 'token'>,
  fragment: string,
  { scope = WRITING, realms, view = WIDE, token }: SignedIn = {},
): Promise<Visit> {
  const window = await visit(service.url, view);
  const opening = {
    access_token: token ?? (await service.token(scope, realms ? new Set(realms.map(uuid)) : '*')),
    expires_in: 900,
    scope: [...(parseScopes(scope) ?? [])].join(' '),
    realms: realms ?? '*',
    label: 'Anna at the desk',
  };
  await window.page.addInitScript(keptOnce(opening));
  await window.goto(fragment);
  await window.page.locator('[data-left]').waitFor({ state: 'attached' });
  return window;
}

/** Keeps a session as a link does, before the first page of a window; not again, where it was ended since. */
function keptOnce(opening: object): string {
  const kept = `{ method: 'link', savedAt: Date.now(), grant: ${JSON.stringify(opening)} }`;
  return `if (window.name !== 'begun') {
    window.name = 'begun';
    sessionStorage.setItem('authrealm.session', JSON.stringify(${kept}));
  }`;
}

function uuid(id: string): Uuid {
  return parseUuid(id) as Uuid;
}

/** Opens a fresh link in a window. */
export async function enter(
  window: Visit,
  service: Pick<Service, 'db' | 'clock'>,
  scope = WRITING,
): Promise<void> {
  const { code } = await linkOf(service, { scope, label: 'Anna at the desk' });
  await window.goto(`#code=${code}`);
  await window.page.locator('[data-left]').waitFor({ state: 'attached' });
}

/** Shows the menu, with the session at its foot, where a window is too narrow to have it beside the page. */
export async function openMenu({ page }: Visit): Promise<void> {
  await page.locator('[data-left]').waitFor({ state: 'attached' });
  const button = page.getByRole('button', { name: 'Menu', expanded: false });
  if (await button.isVisible()) await button.click();
}

/** Nothing went wrong in a window, and nobody is hindered. */
export async function expectSound(window: Visit): Promise<void> {
  expect(await window.hindrances()).toEqual([]);
  expect(window.troubles).toEqual([]);
  expect(await window.page.evaluate('globalThis.scriptsRan')).toBe(false);
  const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await window.page.evaluate(wider)).toBeLessThanOrEqual(0);
}

/** Texts that strangers may have written. */
export const STRANGE = {
  script: `<script>${RAN}</script>`,
  image: `<img src=x onerror="${RAN}">`,
  attribute: `"><svg onload=${RAN}>`,
  override: 'jane\u202egnp.exe',
  emoji: '👩‍👩‍👧 Zoë 🏳️‍🌈',
  alike: 'pаypal',
  long: 'W'.repeat(255),
} as const;
