import { expect } from 'bun:test';
import type { Locator } from 'playwright-core';
import { parseUuid, type Uuid } from '../../src/model/id.ts';
import { parseScopes, ROLES } from '../../src/model/principal.ts';
import { createLink } from '../support/console_sign_in.ts';
import type { Service } from '../support/service.ts';
import {
  type ConsoleWindow,
  NEXT_FRAME,
  openWindow,
  SET_SCRIPTS_RAN,
  VIEWS,
  type View,
  WIDE,
} from './console_window.ts';

export const READ_SCOPE = 'realms:read profiles:read users:read profile-infos:read changes:read';
export const WRITE_SCOPE = `${READ_SCOPE} realms:write profiles:write users:write profile-infos:write`;
export const EVERY_SCOPE = [...ROLES.everything.scopes, 'transfer'].join(' ');

interface SignedInOptions {
  readonly scope?: string;
  /** IDs of the realms to which the session is limited. Default: all. */
  readonly realms?: readonly string[];
  readonly view?: View;
  readonly label?: string;
  /** Default: the token of a new client. */
  readonly token?: string;
}

/** Opens a window with a session of this scope at this address of the console, as after a reload. */
export async function openSignedIn(
  service: Pick<Service, 'url' | 'token'>,
  fragment: string,
  { scope = WRITE_SCOPE, realms, view = WIDE, label = 'Anna at the desk', token }: SignedInOptions = {},
): Promise<ConsoleWindow> {
  const window = await openWindow(service.url, view);
  const grant = {
    access_token: token ?? (await service.token(scope, realms ? new Set(realms.map(uuid)) : '*')),
    expires_in: 900,
    session_expires_in: 900,
    scope: [...(parseScopes(scope) ?? [])].join(' '),
    realms: realms ?? '*',
    label,
    actor: label,
  };
  await window.page.addInitScript(storeSessionOnce(grant));
  await window.goto(fragment);
  await waitForSession(window);
  return window;
}

/** Resolves when the page of a session is drawn, and its effects have run: they register keys, and close the menu. */
async function waitForSession({ page }: ConsoleWindow): Promise<void> {
  await page.locator('[data-left]').waitFor({ state: 'attached' });
  await page.evaluate(NEXT_FRAME);
}

/** Stores a session before the first page of a window loads, but not again after it has ended. */
function storeSessionOnce(grant: object): string {
  const id = crypto.randomUUID();
  const session = `{ id: '${id}', method: 'link', savedAt: Date.now(), grant: ${JSON.stringify(grant)} }`;
  return `if (window.name !== 'begun') {
    window.name = 'begun';
    sessionStorage.setItem('authrealm.session', JSON.stringify(${session}));
  }`;
}

function uuid(id: string): Uuid {
  return parseUuid(id) as Uuid;
}

/** Signs in by a new link. */
export async function signInByLink(
  window: ConsoleWindow,
  service: Pick<Service, 'db' | 'clock'>,
  scope = WRITE_SCOPE,
  label = 'Anna at the desk',
): Promise<void> {
  const { code } = await createLink(service, { scope, label });
  await window.goto(`#code=${code}`);
  await waitForSession(window);
}

/** Opens the menu, which shows the session, if the window is too narrow to show it permanently. */
export async function openMenu(window: ConsoleWindow): Promise<void> {
  await waitForSession(window);
  const button = window.page.getByRole('button', { name: 'Menu', expanded: false });
  if (await button.isVisible()) await button.click();
}

/** The text that a button copies. */
export async function copiedText({ page, until }: ConsoleWindow, button: Locator): Promise<string> {
  await page.evaluate(`navigator.clipboard.writeText('')`);
  await button.click();
  return String(await until('navigator.clipboard.readText()'));
}

/** Expects no errors, no accessibility violations, no executed script and no horizontal scrolling. */
export async function expectNoErrors(window: ConsoleWindow, message?: string): Promise<void> {
  expect(await window.violations(), message).toEqual([]);
  await window.searchesAnswered();
  expect(window.errors, message).toEqual([]);
  expect(await window.page.evaluate('globalThis.scriptsRan'), message).toBe(false);
  expect(await window.page.evaluate(SCROLLED_SIDEWAYS), message).toEqual([]);
}

/** The page and the parts of it that scroll horizontally, except tables and code. */
const SCROLLED_SIDEWAYS = `[...document.querySelectorAll(':not(.table-frame, pre)')]
  .filter((part) => part.scrollWidth > part.clientWidth)
  .filter((part) => part === document.documentElement || /auto|scroll/.test(getComputedStyle(part).overflowX))
  .map((part) => part.outerHTML.slice(0, 100))`;

/** 320 pixels wide, and 1280 pixels at a zoom of 200 %. */
const NARROW = [
  { width: 320, height: 640 },
  { width: 640, height: 400 },
];

/**
 * Expects the same of the current page on a phone and a desktop, light and dark, and no horizontal scrolling on narrower screens or
 * at a zoom of 200 %.
 */
export async function expectNoErrorsInAnyView(window: ConsoleWindow): Promise<void> {
  for (const viewport of NARROW) {
    await window.show({ ...WIDE, viewport });
    expect(await window.page.evaluate(SCROLLED_SIDEWAYS), `${viewport.width} wide`).toEqual([]);
  }
  for (const view of VIEWS) {
    await window.show(view);
    await expectNoErrors(window, `${view.viewport.width} wide, ${view.scheme}`);
  }
}

/** Hostile and unusual texts. */
export const HOSTILE_TEXTS = {
  script: `<script>${SET_SCRIPTS_RAN}</script>`,
  image: `<img src=x onerror="${SET_SCRIPTS_RAN}">`,
  attribute: `"><svg onload=${SET_SCRIPTS_RAN}>`,
  override: 'jane\u202egnp.exe',
  emoji: '👩‍👩‍👧 Zoë 🏳️‍🌈',
  alike: 'pаypal',
  long: 'W'.repeat(255),
} as const;

/** Reads the next page of the list. */
export async function showMore({ page }: ConsoleWindow): Promise<void> {
  const items = page.locator('.long-list li');
  const shown = await items.count();
  await page.getByRole('button', { name: 'Show more' }).click();
  await items.nth(shown).waitFor();
}
