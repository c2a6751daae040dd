import { expect } from 'bun:test';
import { parseUuid, type Uuid } from '../../src/domain/id.ts';
import { parseScopes } from '../../src/domain/principal.ts';
import { createLink } from '../support/console_sign_in.ts';
import type { Service } from '../support/service.ts';
import { RAN, type View, type Visit, visit, WIDE } from './visits.ts';

export const READING = 'realms:read profiles:read users:read profile-infos:read changes:read';
export const WRITING = `${READING} realms:write profiles:write users:write profile-infos:write`;

interface SignedIn {
  readonly scope?: string;
  /** IDs of the realms to which the session is limited. Default: all. */
  readonly realms?: readonly string[];
  readonly view?: View;
  /** Default: the token of a new client. */
  readonly token?: string;
}

/** Opens a window with a session of this scope at this address of the console, as after a reload. */
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

/** Stores a session before the first page of a window loads, but not again after it has ended. */
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

/** Signs in by a new link. */
export async function enter(
  window: Visit,
  service: Pick<Service, 'db' | 'clock'>,
  scope = WRITING,
): Promise<void> {
  const { code } = await createLink(service, { scope, label: 'Anna at the desk' });
  await window.goto(`#code=${code}`);
  await window.page.locator('[data-left]').waitFor({ state: 'attached' });
}

/** Opens the menu, which shows the session, if the window is too narrow to show it permanently. */
export async function openMenu({ page }: Visit): Promise<void> {
  await page.locator('[data-left]').waitFor({ state: 'attached' });
  const button = page.getByRole('button', { name: 'Menu', expanded: false });
  if (await button.isVisible()) await button.click();
}

/** Expects no errors, no accessibility violations, no executed script and no horizontal scrolling. */
export async function expectSound(window: Visit): Promise<void> {
  expect(await window.hindrances()).toEqual([]);
  expect(window.troubles).toEqual([]);
  expect(await window.page.evaluate('globalThis.scriptsRan')).toBe(false);
  const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await window.page.evaluate(wider)).toBeLessThanOrEqual(0);
}

/** Hostile and unusual texts. */
export const STRANGE = {
  script: `<script>${RAN}</script>`,
  image: `<img src=x onerror="${RAN}">`,
  attribute: `"><svg onload=${RAN}>`,
  override: 'jane\u202egnp.exe',
  emoji: '👩‍👩‍👧 Zoë 🏳️‍🌈',
  alike: 'pаypal',
  long: 'W'.repeat(255),
} as const;
