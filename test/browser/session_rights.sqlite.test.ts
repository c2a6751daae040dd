import { expect, setDefaultTimeout, test } from 'bun:test';
import { startService } from '../support/service.ts';
import {
  expectNoErrors,
  expectNoErrorsInAnyView,
  openMenu,
  openSignedIn,
  READ_SCOPE,
} from './console_session.ts';
import { BROWSER_TEST_MS, PHONE, WIDE } from './console_window.ts';
import { createShop } from './shop_fixture.ts';

/** What the console says to a new user: the next step in an empty installation, and the rights of the session. */

setDefaultTimeout(BROWSER_TEST_MS);

const service = await startService({ offline: 'true' });

test('the first page of an empty installation says the next step, and a realm ends that', async () => {
  const window = await openSignedIn(service, '#/');
  await window.page.getByText('This installation is empty').waitFor();
  await expectNoErrorsInAnyView(window);
  await window.page.getByRole('link', { name: 'create a realm' }).click();
  await window.page.getByRole('heading', { name: 'Realms', exact: true }).waitFor();
  expect(await window.page.getByText('This installation is empty').count()).toBe(0);
  await createShop(service);
  await window.load('#/');
  await window.settled();
  expect(await window.page.getByText('This installation is empty').count()).toBe(0);
});

test('the rights of a session, its realms and its end are on one page', async () => {
  const { realm } = await createShop(service);
  const view = { ...WIDE, viewport: PHONE };
  const window = await openSignedIn(service, '#/', { scope: READ_SCOPE, realms: [realm], view });
  await openMenu(window);
  await window.page.getByRole('link', { name: 'Your session' }).click();
  const facts = window.page.getByRole('region', { name: 'Your session' });
  await facts.getByText('Buyer Organization').waitFor();
  const text = await facts.innerText();
  for (const words of ['Anna at the desk', 'a link', 'Read users', 'users:read', 'earlier if it is not used'])
    expect(text).toContain(words);
  expect(text).not.toContain('write');
  await expectNoErrors(window);
});
