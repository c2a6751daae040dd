import { expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { openSignInBudgets } from '../../src/sign_in/budgets.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE } from './console_session.ts';
import { openShop } from './open_console.ts';

/** What the page of a user shows after too many wrong passwords. */

const { service, shop } = await openShop();
const { engine, logKeys } = service.db;
const budgets = openSignInBudgets(engine.budgets, logKeys, service.clock);
const NAME = {
  realmId: shop.realm as Uuid,
  profileId: shop.passwordProfile as Uuid,
  usernameKey: 'jane.doe',
};

test('the page of a user says that sign-ins are throttled, and has passwords checked again', async () => {
  for (let count = 0; count < 100; count += 1)
    await budgets.countWrong({ ...NAME, clientId: 'shop', address: undefined, device: undefined });
  const path = `#/realms/${shop.realm}/users/${shop.user}`;
  const window = await openSignedIn(service, path, { scope: `${READ_SCOPE} users:write` });
  const { page } = window;
  const note = page
    .getByRole('status')
    .filter({ hasText: 'jane.doe is throttled without a device token until' });
  await note.getByRole('button', { name: 'Check passwords again' }).click();
  await note.waitFor({ state: 'detached' });
  expect(await budgets.throttledUntil(NAME)).toBeUndefined();
  await expectNoErrors(window);
});

test('the page of a user says nothing of it to a session that may not lift it', async () => {
  for (let count = 0; count < 100; count += 1)
    await budgets.countWrong({ ...NAME, clientId: 'shop', address: undefined, device: undefined });
  const window = await openSignedIn(service, `#/realms/${shop.realm}/users/${shop.user}`, {
    scope: READ_SCOPE,
  });
  await window.page.getByText('jane.doe').first().waitFor();
  expect(await window.page.getByText('throttled').count()).toBe(0);
  await expectNoErrors(window);
});
