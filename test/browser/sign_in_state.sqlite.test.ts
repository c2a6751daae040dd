import { expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { openSignInBudgets } from '../../src/sign_in/budgets.ts';
import {
  expectNoErrors,
  expectNoErrorsInAnyView,
  openSignedIn,
  READ_SCOPE,
  WRITE_SCOPE,
} from './console_session.ts';
import type { ConsoleWindow } from './console_window.ts';
import { openShop } from './open_console.ts';
import { pagePaths } from './page_paths.ts';

/** Why a user cannot sign in, and what a support desk does about it, on the page of the user. */

const { service, shop } = await openShop({ logSignIns: 'true' });
const { engine, logKeys } = service.db;
const budgets = openSignInBudgets(engine.budgets, logKeys, service.clock);
const NAME = {
  realmId: shop.realm as Uuid,
  profileId: shop.passwordProfile as Uuid,
  usernameKey: 'jane.doe',
};
const DESK_SCOPE = `${READ_SCOPE} history:read sign-in-throttles:write`;

const openUser = (scope: string) => openSignedIn(service, pagePaths(shop).user, { scope });
const press = ({ page }: ConsoleWindow, name: string) =>
  page.getByRole('button', { name, exact: true }).click();

async function exhaust(): Promise<void> {
  for (let count = 0; count < 100; count += 1)
    await budgets.countWrong({ ...NAME, clientId: 'shop', address: undefined, device: undefined });
}

test('the page of a user says that sign-ins are throttled, and has passwords checked again', async () => {
  await exhaust();
  const window = await openUser(DESK_SCOPE);
  const { page } = window;
  await page.getByText('The user is enabled.').waitFor();
  await page.getByText('jane.doe has a password.').waitFor();
  const note = page
    .getByRole('status')
    .filter({ hasText: 'jane.doe is throttled without a device token until' });
  await note.waitFor();
  await expectNoErrorsInAnyView(window);
  await page.getByRole('button', { name: 'Check passwords again' }).click();
  await note.waitFor({ state: 'detached' });
  expect(await budgets.throttles(NAME)).toEqual([]);
  await expectNoErrors(window);
});

test('the page of a user offers no lift to a session that may only see throttles, and shows none without history:read', async () => {
  await exhaust();
  const reader = await openUser(`${READ_SCOPE} history:read`);
  await reader.page.getByText('jane.doe is throttled without a device token until').waitFor();
  expect(await reader.page.getByRole('button', { name: 'Check passwords again' }).count()).toBe(0);
  await expectNoErrors(reader);
  const other = await openUser(READ_SCOPE);
  await other.page.getByText('jane.doe').first().waitFor();
  await other.settled();
  expect(await other.page.getByText('throttled').count()).toBe(0);
  await expectNoErrors(other);
});

test('the page of a user shows the last sign-ins with time and way', async () => {
  const user = shop.user as Uuid;
  for (const [object, detail] of [
    [shop.usernameLink, {}],
    [shop.subjectLink, { mechanism: 'oidc' }],
  ] as const) {
    const fields = { realm: NAME.realmId, user, object, detail };
    await engine.log.append([createAuditEntry('sign-in.succeeded', fields, service.clock)]);
  }
  const window = await openUser(DESK_SCOPE);
  const card = window.page.getByRole('region', { name: 'How this user signs in' });
  const items = card.getByRole('listitem');
  await items.nth(1).waitFor();
  expect(await items.locator('span').first().textContent()).toContain('Through a provider: auth0|');
  expect(await items.nth(1).locator('span').first().textContent()).toBe('With a password: jane.doe');
  await expectNoErrorsInAnyView(window);
});

test('the page of a user says how to have sign-ins logged', async () => {
  const { service: other, shop: own } = await openShop();
  const window = await openSignedIn(other, pagePaths(own).user, { scope: DESK_SCOPE });
  await window.page.getByText('Not logged: start the service with --log-sign-ins.').waitFor();
  await expectNoErrors(window);
});

test('the page of a user disables, enables and signs out the user', async () => {
  const window = await openUser(`${WRITE_SCOPE} history:read`);
  const { page } = window;
  const path = `/v2/authentication-realms/${shop.realm}/user-authentication-info/${shop.user}`;
  const token = await service.token('users:read');
  const enabled = async () =>
    ((await (await service.get(path, token)).json()) as { data: { enabled?: boolean } }).data.enabled;
  const confirm = (title: string, verb: string) =>
    page.getByRole('dialog', { name: title }).getByRole('button', { name: verb, exact: true }).click();
  await press(window, 'Disable');
  await expectNoErrors(window);
  await confirm('Disable this user?', 'Disable');
  await page.getByText('The user was disabled.').waitFor();
  await page.getByRole('heading', { name: 'Disabled: cannot sign in' }).waitFor();
  expect(await enabled()).toBe(false);
  await press(window, 'Enable');
  await confirm('Enable this user?', 'Enable');
  await page.getByText('The user was enabled.').waitFor();
  await page.getByText('The user is enabled.').waitFor();
  expect(await enabled()).toBeUndefined();
  await press(window, 'Sign out everywhere');
  await confirm('Sign this user out everywhere?', 'Sign out everywhere');
  await page.getByText('The user was signed out everywhere.').waitFor();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const person = { realm: NAME.realmId, user: shop.user as Uuid };
  expect(await engine.log.newestActsOf(person, 'sign-in.ended', 10)).toHaveLength(1);
  await expectNoErrors(window);
});
