import { expect, test } from 'bun:test';
import type { Route } from 'playwright-core';
import { expectNoErrors, openSignedIn, READ_SCOPE, showMore, WRITE_SCOPE } from './console_session.ts';
import { type ConsoleWindow, PHONE } from './console_window.ts';
import { openShop } from './open_console.ts';

/** The Changes page over all realms: the realm, the client and the last known name of each row. */

const { service, shop } = await openShop();
const writer = await service.client(WRITE_SCOPE);
const token = await service.grant(writer);

async function create(path: string, data: object): Promise<string> {
  const answer = await service.post(path, token, { data });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: { id: string } }).data.id;
}

const usersOf = (realm: string) => `/v2/authentication-realms/${realm}/user-authentication-info`;
const addRealm = (name: string) =>
  create('/v2/authentication-realms', { type: 'authentication-realm', name });
const addUser = (realm: string, name: string) =>
  create(usersOf(realm), { type: 'user_authentication_info', name, email: 'someone@example.com' });

const live = ({ page }: ConsoleWindow) => page.getByText('Live', { exact: true }).waitFor();
const rows = ({ page }: ConsoleWindow) =>
  page.getByRole('list', { name: 'Changes, newest first' }).getByRole('link');

test('the Changes page begins with all realms, newest first, and names the realm of each change', async () => {
  const other = await addRealm('Seller Organization');
  await addUser(other, 'First there');
  await addUser(shop.realm, 'Then here');
  await addUser(other, 'There again');
  const window = await openSignedIn(service, '#/changes', { view: { viewport: PHONE, scheme: 'light' } });
  await live(window);
  const places = [
    'There again · Seller Organization',
    'Then here · Buyer Organization',
    'First there · Seller Organization',
  ];
  for (const [index, words] of places.entries())
    await rows(window).nth(index).filter({ hasText: words }).waitFor();
  await addUser(shop.realm, 'Live here');
  await rows(window).filter({ hasText: 'Live here · Buyer Organization' }).waitFor();
  await addRealm('Opened meanwhile');
  await rows(window).filter({ hasText: 'Opened meanwhile · Opened meanwhile' }).waitFor();
  await expectNoErrors(window);

  await window.page.getByLabel('Realm').selectOption(other);
  await live(window);
  await rows(window).filter({ hasText: 'Then here' }).waitFor({ state: 'detached' });
  await rows(window).filter({ hasText: 'There again' }).waitFor();
});

test('a request for new changes that fails loses none of them', async () => {
  const other = await addRealm('Polled');
  const window = await openSignedIn(service, '#/changes');
  await live(window);
  let requests = 0;
  await window.page.route('**/changes/search?*', (route) => {
    requests += 1;
    return requests === 1 ? route.abort('connectionreset') : route.fallback();
  });
  await addUser(shop.realm, 'Polled here');
  await addUser(other, 'Polled there');
  await rows(window).filter({ hasText: 'Polled here' }).waitFor();
  await rows(window).filter({ hasText: 'Polled there' }).waitFor();
  await window.expectError(/ERR_CONNECTION_RESET/);
  await expectNoErrors(window);
});

test('the list of changes of all realms starts over after too many changes at once', async () => {
  const realm = await addRealm('Flooded');
  const window = await openSignedIn(service, '#/changes');
  await live(window);
  const { promise: written, resolve: release } = Promise.withResolvers<void>();
  await window.page.route('**/changes/search?*', async (route) => {
    await written;
    await route.fallback();
  });
  for (let count = 0; count <= 1_000; count += 50)
    await Promise.all(Array.from({ length: 50 }, (_, index) => addUser(realm, `Flood ${count + index}`)));
  release();
  await rows(window).filter({ hasText: 'Flood 10' }).first().waitFor();
  await window.page.getByText('100 changes, searched back to').waitFor();
  await expectNoErrors(window);
});

test('the list of changes of all realms reaches the oldest change of each realm', async () => {
  const realms = await Promise.all(Array.from({ length: 12 }, (_, index) => addRealm(`Many ${index}`)));
  for (const realm of realms) await addUser(realm, 'One');
  const window = await openSignedIn(service, '#/changes', { scope: READ_SCOPE });
  await live(window);
  const end = window.page.getByText('everything the feed retains');
  while (!(await end.isVisible())) await showMore(window);
  await rows(window).filter({ hasText: 'Realm created' }).filter({ hasText: 'Buyer Organization' }).waitFor();
  await expectNoErrors(window);
});

test('the address of a change in the list of all realms opens that change', async () => {
  const user = await addUser(shop.realm, 'Addressed');
  const window = await openSignedIn(service, '#/changes', { scope: `${READ_SCOPE} history:read` });
  await rows(window).filter({ hasText: 'Addressed' }).click();
  const dialog = window.page.getByRole('dialog', { name: 'User created' });
  await dialog.getByText(user).first().waitFor();
  await dialog.getByRole('row', { name: /Addressed/ }).waitFor();
  await window.page.reload();
  await dialog.getByRole('row', { name: /Addressed/ }).waitFor();
  await expectNoErrors(window);
});

test('a change at the address of the page stays in the list of all realms while its first page loads slowly', async () => {
  const user = await addUser(shop.realm, 'Loaded slowly');
  const window = await openSignedIn(service, '#/changes');
  await rows(window).filter({ hasText: 'Loaded slowly' }).click();
  const dialog = window.page.getByRole('dialog', { name: 'User created' });
  await dialog.getByText(user).first().waitFor();
  let requests = 0;
  await window.page.route('**/changes/search?*', async (route) => {
    requests += 1;
    if (requests === 1) await Bun.sleep(1_000);
    await route.fallback();
  });
  await window.page.reload();
  await live(window);
  await dialog.getByText(user).first().waitFor();
  await rows(window).filter({ hasText: 'Loaded slowly' }).first().waitFor();
  expect(await rows(window).filter({ hasText: 'Loaded slowly' }).count()).toBe(1);
  await expectNoErrors(window);
});

test('the search for the change at the address of the page waits before it repeats a failed request', async () => {
  const realm = await addRealm('Searched for');
  const feed = await service.get(
    `/v2/authentication-realms/${realm}/changes`,
    await service.token('changes:read'),
  );
  const at = ((await feed.json()) as { data: readonly { time: string }[] }).data[0]?.time;
  const window = await openSignedIn(service, '#/changes');
  await live(window);
  let failures = 0;
  const fail = (route: Route) => {
    failures += 1;
    return route.abort('connectionreset');
  };
  await window.page.route('**/changes/search?*', fail);
  const began = performance.now();
  await window.page.evaluate(`location.hash = '#/changes?entry=1&in=${realm}&at=${at}'`);
  await window.expectError(/ERR_CONNECTION_RESET/);
  await Bun.sleep(1_000);
  // The search for the change waits two seconds, and that for new changes five.
  expect(failures).toBeLessThanOrEqual(2 * (1 + Math.floor((performance.now() - began) / 2_000)));
  await window.page.unroute('**/changes/search?*', fail);
  await window.page.getByRole('dialog', { name: 'Realm created' }).waitFor();
});

test('changes name clients with the scope admin and deleted users with history:read, and neither without', async () => {
  const admin = await service.token('admin');
  await service.put(`/admin/v1/clients/${writer.clientId}`, admin, { data: { name: 'The nightly import' } });
  const user = await addUser(shop.realm, 'Gone Tomorrow');
  const data = { type: 'user_authentication_info', name: 'Gone Today' };
  expect((await service.put(`${usersOf(shop.realm)}/${user}`, token, { data })).status).toBe(200);
  expect((await service.del(`${usersOf(shop.realm)}/${user}`, token)).status).toBe(204);

  const window = await openSignedIn(service, '#/changes', { scope: `${READ_SCOPE} admin history:read` });
  const deleted = rows(window).filter({ hasText: 'deleted' }).filter({ hasText: 'Gone Today' });
  await deleted.filter({ hasText: 'The nightly import' }).waitFor();
  await window.page.getByLabel('Actor').fill('the nightly import');
  await deleted.waitFor();
  await expectNoErrors(window);
  await window.close();

  const reader = await openSignedIn(service, '#/changes');
  await rows(reader).filter({ hasText: user }).filter({ hasText: 'deleted' }).waitFor();
  expect(await reader.page.content()).not.toMatch(/Gone To|nightly/);
  await expectNoErrors(reader);
});

test('changes of an erased user are shown by their ID, to sessions with the scope history:read as well', async () => {
  const admin = await service.token('admin');
  const user = await addUser(shop.realm, 'Erased Forever');
  const data = { realm_id: shop.realm, user_id: user };
  expect((await service.post('/admin/v1/erasures', admin, { data })).status).toBe(201);
  const window = await openSignedIn(service, '#/changes', { scope: `${READ_SCOPE} admin history:read` });
  await rows(window).filter({ hasText: user }).filter({ hasText: 'erased' }).waitFor();
  await window.page.waitForLoadState('networkidle').catch(() => undefined);
  expect(await window.page.content()).not.toContain('Erased Forever');
  await expectNoErrors(window);
});
