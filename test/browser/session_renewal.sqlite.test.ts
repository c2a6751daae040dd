import { expect, test } from 'bun:test';
import { decodeJwt } from 'jose';
import { createLink } from '../support/console_sign_in.ts';
import { runCommand } from '../support/processes.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE, signInByLink, WRITE_SCOPE } from './console_session.ts';
import { type ConsoleWindow, openWindow, VIEWS } from './console_window.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** The renewal of sessions by the page, and what stays of the page when a session ends. */

const { service, shop } = await openShop();

const tokenOf = async ({ page }: ConsoleWindow) =>
  JSON.parse((await page.evaluate(`sessionStorage['authrealm.session']`)) as string).grant
    .access_token as string;
const press = ({ page }: ConsoleWindow, name: string) =>
  page.getByRole('button', { name, exact: true }).click();
const signInOver = ({ page }: ConsoleWindow) => page.getByRole('dialog', { name: 'Sign in to the console' });

/** Opens the form of a user, and types into it. No request is open then that could be late for what follows. */
async function typeInForm(window: ConsoleWindow, typed: string): Promise<void> {
  await window.page.evaluate(`location.hash = '${pagePaths(shop).user}'`);
  await press(window, 'Edit');
  await window.page.getByLabel('Family name').fill(typed);
  await window.settled();
}

async function endOnServer(window: ConsoleWindow): Promise<void> {
  await service.del('/console/token', await tokenOf(window), { Origin: service.url });
  service.clock.advance(1_000);
}

async function followLink({ page }: ConsoleWindow, label: string, scope = WRITE_SCOPE): Promise<void> {
  const { code } = await createLink(service, { scope, label });
  await page.evaluate(`location.hash = '#code=${code}'`);
}

test('a page that is used renews its token, and keeps what was typed', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await page.clock.install();
  await signInByLink(window, service);
  const first = await tokenOf(window);
  await typeInForm(window, 'Renewed');
  await page.clock.fastForward(400_000);
  await page.keyboard.press('Shift');
  expect(await tokenOf(window)).toBe(first);
  const renewal = page.waitForResponse((answer) => answer.request().method() === 'PUT');
  await page.clock.fastForward(210_000);
  expect((await renewal).status()).toBe(200);
  await window.until(`!sessionStorage['authrealm.session'].includes('${first}')`);
  const second = await tokenOf(window);
  expect(decodeJwt(second).sid).toBe(decodeJwt(first).sid);
  // 15 minutes after the first token, the second one goes on.
  await page.clock.fastForward(300_000);
  expect(await signInOver(window).count()).toBe(0);
  expect(await page.getByLabel('Family name').inputValue()).toBe('Renewed');
  await expectNoErrors(window);
});

test('a renewal that fails is tried again while the token lasts', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await page.clock.install();
  await signInByLink(window, service);
  const first = await tokenOf(window);
  await page.clock.fastForward(500_000);
  await page.keyboard.press('Shift');
  await page.context().setOffline(true);
  await page.clock.fastForward(120_000);
  await window.expectError(/ERR_INTERNET_DISCONNECTED/);
  const renewal = page.waitForResponse((answer) => answer.request().method() === 'PUT');
  await page.context().setOffline(false);
  await page.clock.fastForward(10_000);
  expect((await renewal).status()).toBe(200);
  await window.until(`!sessionStorage['authrealm.session'].includes('${first}')`);
});

test.each(VIEWS)('a form survives the end of its session, $viewport.width wide, $scheme', async (view) => {
  const window = await openWindow(service.url, view);
  const { page } = window;
  await signInByLink(window, service);
  const typed = `Survivor ${view.viewport.width} ${view.scheme}`;
  await typeInForm(window, typed);
  await endOnServer(window);
  await press(window, 'Save');
  await signInOver(window)
    .getByText(/Your session has ended/)
    .waitFor();
  await window.expectError(/status of 401/);
  await expectNoErrors(window);
  expect(JSON.stringify(await page.evaluate('({ ...sessionStorage, ...localStorage })'))).not.toContain(
    typed,
  );
  expect(await page.getByText(/ends in less than two minutes/).count()).toBe(0);
  for (let times = 0; times < 3; times += 1) await page.keyboard.press('Escape');
  expect(await signInOver(window).isVisible()).toBe(true);
  await followLink(window, 'Anna at the desk');
  await signInOver(window).waitFor({ state: 'detached' });
  expect(await page.getByLabel('Family name').inputValue()).toBe(typed);
  await press(window, 'Save');
  await page.getByText(typed).first().waitFor();
  await expectNoErrors(window);
});

test('what was typed is discarded when another user signs in, and on request', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await signInByLink(window, service);
  await typeInForm(window, 'of Anna');
  await endOnServer(window);
  await press(window, 'Save');
  await signInOver(window).waitFor();
  await followLink(window, 'Berta');
  await page.getByText('Berta', { exact: true }).waitFor();
  expect(await page.getByLabel('Family name').count()).toBe(0);
  await typeInForm(window, 'of Berta');
  await endOnServer(window);
  await press(window, 'Save');
  await press(window, 'Discard what was typed');
  await page.getByText('You have signed out.').waitFor();
  expect(await page.getByLabel('Family name').count()).toBe(0);
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
  await window.expectError(/status of 401/);
  await expectNoErrors(window);
});

test.each([
  ['a link without a label', 'command line', WRITE_SCOPE],
  ['a link with fewer scopes', 'Anna', READ_SCOPE],
])('what was typed is discarded when %s signs in', async (_, label, scope) => {
  const window = await openWindow(service.url);
  const { page } = window;
  await signInByLink(window, service);
  await followLink(window, label);
  await page.getByText(`You are now signed in as ${label}.`).waitFor({ state: 'attached' });
  await typeInForm(window, 'of the first user');
  await endOnServer(window);
  await press(window, 'Save');
  await signInOver(window).waitFor();
  await followLink(window, label, scope);
  await signInOver(window).waitFor({ state: 'detached' });
  await page.getByText(label, { exact: true }).waitFor();
  expect(await page.getByLabel('Family name').count()).toBe(0);
  await window.expectError(/status of 401/);
  await expectNoErrors(window);
});

/** The dialog over a page of a session that has ended. */
async function openEnded(label: string, realms?: readonly string[]): Promise<ConsoleWindow> {
  const rights = { scope: 'realms:read users:read', ...(realms ? { realms } : {}) };
  const session = { ...rights, label, token: 'ended' };
  const window = await openSignedIn(service, '#/try/list-authentication-realm', session);
  await press(window, 'Send GET');
  await window.expectError(/status of 401/);
  await press(window, 'Sign in again');
  await signInOver(window).waitFor();
  return window;
}

test.each([
  ['a session of one realm', 'Anna at the desk', [shop.realm]],
  ['a session whose label is shell text', `$(id) \`id\` 'quoted' "\\"; exit 1 #`, undefined],
])('%s prints the command with its own label, scopes and realms when it ends', async (_, label, realms) => {
  const window = await openEnded(label, realms);
  const command = String(await signInOver(window).locator('.command code').textContent());
  const { stdout } = await runCommand(['sh', '-c', command.replace(/^authrealm/, `printf '%s\\n'`)]);
  expect(stdout.trimEnd().split('\n')).toEqual([
    ...['console', 'link', '--scope', 'realms:read users:read'],
    ...(realms ? ['--realm', realms.join(' ')] : []),
    ...['--label', label, '--base-url', service.url],
  ]);
  await expectNoErrors(window);
});

test('a session without a label says that the next sign-in discards what was typed', async () => {
  const window = await openEnded('command line');
  await signInOver(window).getByText('The next sign-in discards what you have typed').waitFor();
  await expectNoErrors(window);
});

test('a session that expires in a form is continued by the same user, who signs in over it', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await page.clock.install();
  await signInByLink(window, service);
  await typeInForm(window, 'of Anna');
  // A dialog that is not modal yet leaves the focus, and so what is typed, to the form below it.
  await page.evaluate(`new MutationObserver(() => {
    globalThis.wasModal ??= document.querySelector('.sign-in-over')?.matches(':modal');
  }).observe(document.body, { childList: true, subtree: true })`);
  await page.clock.fastForward(901_000);
  await signInOver(window).getByText('Your session has expired.').waitFor();
  expect(await page.evaluate('wasModal')).toBe(true);
  await followLink(window, 'Anna at the desk');
  await signInOver(window).waitFor({ state: 'detached' });
  expect(await page.getByLabel('Family name').inputValue()).toBe('of Anna');
  await expectNoErrors(window);
});
