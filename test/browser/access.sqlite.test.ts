import { expect, setDefaultTimeout, test } from 'bun:test';
import { ROLES } from '../../src/model/principal.ts';
import { createLink } from '../support/console_sign_in.ts';
import { startService } from '../support/service.ts';
import {
  copiedText,
  expectNoErrors,
  expectNoErrorsInAnyView,
  openMenu,
  openSignedIn,
  READ_SCOPE,
  signInByLink,
} from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, openWindow, PHONE } from './console_window.ts';

/** The page that lets people in, lists their sessions, and ends them. */

setDefaultTimeout(BROWSER_TEST_MS);

const ADMIN = `${READ_SCOPE} admin`;

const service = await startService({ offline: 'true' });
const made = await service.post('/v2/authentication-realms', await service.token('realms:write'), {
  data: { type: 'authentication-realm', name: 'Buyer Organization' },
});
const realm = ((await made.json()) as { data: { id: string } }).data.id;

const section = ({ page }: ConsoleWindow, name: string) => page.getByRole('region', { name });

/** Fills the form, and copies the link from the dialog that shows it once. */
async function invite(window: ConsoleWindow, name: string, fill: () => Promise<void>): Promise<string> {
  const { page } = window;
  await page.getByRole('button', { name: 'New invitation' }).click();
  await page.getByLabel('Name').fill(name);
  await fill();
  await page.getByRole('button', { name: 'Create link' }).click();
  const dialog = page.getByRole('dialog', { name: 'Link of this invitation' });
  const link = await copiedText(window, dialog.getByRole('button', { name: 'Copy the link' }));
  await expectNoErrors(window);
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(link);
  return link;
}

/** Confirms the dialog that a button opens. */
async function confirmDialog({ page }: ConsoleWindow, title: string, verb: string): Promise<void> {
  const dialog = page.getByRole('dialog', { name: title });
  await dialog.getByRole('button', { name: verb, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
}

async function expectSignIn({ page }: ConsoleWindow): Promise<void> {
  await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
}

test('an invited colleague signs in with the role and realm, and is signed out when the session is ended', async () => {
  const window = await openSignedIn(service, '#/access', { scope: ADMIN });
  const { page } = window;
  await section(window, 'Open invitations').getByText('None').waitFor();
  const link = await invite(window, 'Carla', async () => {
    await page.getByLabel('Role').selectOption('support');
    await page.getByLabel('Some').check();
    await page.getByRole('checkbox', { name: 'Buyer Organization' }).check();
    await expectNoErrors(window);
  });
  const row = section(window, 'Open invitations').getByRole('listitem').filter({ hasText: 'Carla' });
  await row.filter({ hasText: 'Support · Buyer Organization' }).waitFor();
  await expectNoErrorsInAnyView(window);

  const colleague = await openWindow(service.url, { viewport: PHONE, scheme: 'dark' });
  await colleague.page.goto(link);
  await openMenu(colleague);
  await colleague.page.getByText('Carla', { exact: true }).waitFor();
  const grant = JSON.parse(
    (await colleague.page.evaluate(`sessionStorage['authrealm.session']`)) as string,
  ).grant;
  expect([grant.scope.split(' '), grant.realms]).toEqual([[...ROLES.support.scopes], [realm]]);
  expect(await colleague.page.getByRole('link', { name: 'Access' }).count()).toBe(0);

  await page.reload();
  await section(window, 'Open invitations').getByText('None').waitFor();
  const sessions = section(window, 'Sessions');
  const own = sessions.getByRole('listitem').filter({ hasText: 'Carla' });
  await own.filter({ hasText: /Support · Buyer Organization · begun .+ · last use / }).waitFor();
  await sessions.getByRole('button', { name: 'End Carla' }).click();
  await confirmDialog(window, 'End the session of Carla?', 'End');
  await page.getByText('The session was ended.').waitFor();
  await own.waitFor({ state: 'detached' });
  await expectNoErrors(window);
  service.clock.advance(1_000);
  await colleague.page.evaluate(`location.hash = '#/users'`);
  await expectSignIn(colleague);
});

test('an invitation with everything is for all realms, shows import and export, and is withdrawn', async () => {
  const window = await openSignedIn(service, '#/access', { scope: ADMIN });
  const { page } = window;
  const link = await invite(window, 'Dora', async () => {
    await page.getByLabel('Some').check();
    await page.getByLabel('Role').selectOption('everything');
    expect(await page.getByLabel('Some').count()).toBe(0);
    await page.getByLabel('May import and export').check();
  });
  const row = section(window, 'Open invitations').getByRole('listitem').filter({ hasText: 'Dora' });
  await row.filter({ hasText: 'Everything, import and export files · all realms' }).waitFor();
  await row.getByRole('button', { name: 'Withdraw Dora' }).click();
  await confirmDialog(window, 'Withdraw the invitation of Dora?', 'Withdraw');
  await page.getByText('The invitation was withdrawn.').waitFor();
  await row.waitFor({ state: 'detached' });
  await expectNoErrors(window);
  const late = await openWindow(service.url);
  await late.page.goto(link);
  await expectSignIn(late);
  await late.page.getByText('was withdrawn').waitFor();
  await late.expectError(/status of 400/);
});

test('the realms that were chosen for an invitation stay while another role is everything', async () => {
  const window = await openSignedIn(service, '#/access', { scope: ADMIN });
  const { page } = window;
  await invite(window, 'Emil', async () => {
    await page.getByLabel('Some').check();
    await page.getByRole('checkbox', { name: 'Buyer Organization' }).check();
    await page.getByLabel('Role').selectOption('everything');
    await page.getByLabel('Some').waitFor({ state: 'detached' });
    await page.getByLabel('Role').selectOption('support');
  });
  const row = section(window, 'Open invitations').getByRole('listitem').filter({ hasText: 'Emil' });
  await row.filter({ hasText: 'Support · Buyer Organization' }).waitFor();
  await expectNoErrors(window);
});

test('the form of an invitation names what is missing or too long', async () => {
  const window = await openSignedIn(service, '#/access', { scope: ADMIN });
  const { page } = window;
  const submit = () => page.getByRole('button', { name: 'Create link' }).click();
  await page.getByRole('button', { name: 'New invitation' }).click();
  await page.getByLabel('Some').check();
  await submit();
  await page.getByText('Enter the name.').waitFor();
  await page.getByText('Select at least one realm, or choose all.').waitFor();
  await expectNoErrors(window);
  await page.getByLabel('Name').fill('x'.repeat(65));
  await page.getByLabel('All, including future realms').check();
  await submit();
  await page.getByText(/^Name must be 1 to 64 letters/).waitFor();
  await window.expectError(/status of 400/);
  await expectNoErrors(window);
});

test('all sessions end together, that of the page too', async () => {
  const window = await openWindow(service.url);
  await signInByLink(window, service, ADMIN);
  await window.page.evaluate(`location.hash = '#/access'`);
  const sessions = section(window, 'Sessions');
  await sessions.getByRole('button', { name: 'End all' }).click();
  const dialog = window.page.getByRole('dialog', { name: 'End all sessions, also this one?' });
  await dialog.getByText('This session ends too, and you are signed out.').waitFor();
  await expectNoErrors(window);
  await dialog.getByRole('button', { name: 'End', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  await window.settled();
  service.clock.advance(1_000);
  await window.page.evaluate(`location.hash = '#/users'`);
  await expectSignIn(window);
});

test('Access has no menu entry and no controls without the scope admin, and names the providers', async () => {
  const window = await openSignedIn(service, '#/access', { scope: READ_SCOPE });
  await window.page.getByText('does not have permission').first().waitFor();
  await window.expectError(/403/);
  expect(await window.page.getByRole('link', { name: 'Access' }).count()).toBe(0);
  expect(await window.page.getByRole('button', { name: /New invitation|End|Withdraw/ }).count()).toBe(0);
  await section(window, 'Providers that let people in').getByText('None').waitFor();
  await expectNoErrors(window);
});

test('Access opens by its shortcut', async () => {
  const window = await openSignedIn(service, '#/nowhere', { scope: ADMIN });
  await window.page.keyboard.press('g');
  await window.page.keyboard.press('a');
  await section(window, 'Sessions').waitFor();
  await expectNoErrors(window);
});

test('a link of the command is listed among the invitations while it is valid', async () => {
  await createLink(service, { label: 'By command' });
  const window = await openSignedIn(service, '#/access', { scope: ADMIN });
  await section(window, 'Open invitations').getByText('By command').waitFor();
  service.clock.advance(61_000);
  await window.page.reload();
  await section(window, 'Sessions').waitFor();
  await window.settled();
  expect(await window.page.getByText('By command').count()).toBe(0);
  await expectNoErrors(window);
});
