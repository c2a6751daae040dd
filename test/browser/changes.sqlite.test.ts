import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { changeClient } from '../../src/access/clients/clients.ts';
import { findPort } from '../support/daemons.ts';
import { createFixture, startService } from '../support/service.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';
import {
  expectNoErrors,
  HOSTILE_TEXTS,
  openSignedIn,
  READ_SCOPE,
  showMore,
  WRITE_SCOPE,
} from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, VIEWS } from './console_window.ts';

setDefaultTimeout(BROWSER_TEST_MS);

/** The Changes page of a realm: new changes, filters, values and older changes. */

const service = await startService({ offline: 'true' });
const shop = await createFixture(service.db);
const writer = await service.token(WRITE_SCOPE);

const usersOf = (realm: string) => `/v2/authentication-realms/${realm}/user-authentication-info`;

async function addUser(name: string, email: string, realm: string = shop.realm): Promise<string> {
  const data = { type: 'user_authentication_info', name, email };
  const answer = await service.post(usersOf(realm), writer, { data });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: { id: string } }).data.id;
}

async function addRealm(name: string): Promise<string> {
  const data = { type: 'authentication-realm', name };
  const answer = await service.post('/v2/authentication-realms', writer, { data });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: { id: string } }).data.id;
}

async function rename(user: string, name: string): Promise<void> {
  const data = { type: 'user_authentication_info', name };
  expect((await service.put(`${usersOf(shop.realm)}/${user}`, writer, { data })).status).toBe(200);
}

const live = ({ page }: ConsoleWindow) => page.getByText('Live', { exact: true }).waitFor();
const rows = ({ page }: ConsoleWindow) =>
  page.getByRole('list', { name: 'Changes, newest first' }).getByRole('link');

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  const mark = `${view.viewport.width} ${view.scheme}`;

  test('the Changes page shows changes live, filters them, and compares values', async () => {
    const window = await openSignedIn(service, '#/changes', { scope: `${READ_SCOPE} history:read`, view });
    const { page } = window;
    await live(window);
    await page.getByLabel('Realm').selectOption(shop.realm);
    await live(window);
    const email = `${view.scheme}.${view.viewport.width}@example.com`;
    const user = await addUser(`New ${mark}`, email);
    await rows(window)
      .filter({ hasText: `New ${mark}` })
      .waitFor();
    await expectNoErrors(window);

    await page.getByLabel('Kind').selectOption('Links');
    await page.getByLabel('Event').selectOption('created');
    await rows(window).filter({ hasText: 'user' }).first().waitFor({ state: 'detached' });
    await rows(window).filter({ hasText: shop.subject }).waitFor();
    await page.waitForURL(
      `**/console#/changes?realm=${shop.realm}&kind=user-authentication-oidc-profile-info&event=created`,
    );
    await page.reload();
    await live(window);
    expect(await page.getByLabel('Kind').inputValue()).toBe('user-authentication-oidc-profile-info');
    await page.getByLabel('Kind').selectOption('Users');
    await page.getByLabel('Event').selectOption('updated');

    await rename(user, `Renamed ${mark}`);
    await rows(window)
      .filter({ hasText: `Renamed ${mark}` })
      .click();
    const dialog = page.getByRole('dialog', { name: 'User updated' });
    await dialog.getByRole('row', { name: `Name New ${mark} Renamed ${mark}` }).waitFor();
    await expectNoErrors(window);
    const address = page.url();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.waitForURL((at) => !at.hash.includes('entry='));

    // The address of an entry opens that entry.
    await page.goto(address);
    await page.reload();
    await dialog.getByRole('row', { name: `Name New ${mark} Renamed ${mark}` }).waitFor();
  });

  test('the Changes page shows markup and invisible characters of names as text', async () => {
    const window = await openSignedIn(service, `#/changes?realm=${shop.realm}`, {
      scope: `${READ_SCOPE} history:read`,
      view,
    });
    const { page } = window;
    const strange = await addUser(`${HOSTILE_TEXTS.script}${mark}`, `strange.${view.scheme}@example.com`);
    await rename(strange, `${HOSTILE_TEXTS.image}${HOSTILE_TEXTS.override}`);
    await rows(window).filter({ hasText: HOSTILE_TEXTS.image }).filter({ hasText: 'U+202E' }).first().click();
    const change = page.getByRole('dialog').getByRole('row', { name: /^Name / });
    await change.filter({ hasText: HOSTILE_TEXTS.script }).filter({ hasText: 'U+202E' }).waitFor();
    await expectNoErrors(window);
  });

  test('the Changes page hides values before and after without the scope history:read', async () => {
    const window = await openSignedIn(service, `#/changes?realm=${shop.realm}`, {
      scope: 'changes:read',
      view,
    });
    const { page } = window;
    await live(window);
    await rows(window).first().click();
    await page.getByText('The values before and after require the scope history:read.').waitFor();
    expect(await page.getByRole('columnheader').count()).toBe(0);
    // Without a scope that reads records, only their IDs are shown.
    expect(await page.content()).not.toContain('Jane');
    await expectNoErrors(window);
  });
});

test('the Changes page shows no personal data of an erased user', async () => {
  const admin = await service.token('admin');
  const user = await addUser('Somebody Erasable', 'erasable@example.com');
  const data = { realm_id: shop.realm, user_id: user };
  expect((await service.post('/admin/v1/erasures', admin, { data })).status).toBe(201);
  const window = await openSignedIn(service, `#/changes?realm=${shop.realm}`, {
    scope: `${READ_SCOPE} history:read`,
  });
  const { page } = window;
  await rows(window).filter({ hasText: 'erased' }).first().waitFor();
  await rows(window).filter({ hasText: user }).filter({ hasText: 'created' }).click();
  await page.getByText('Its personal data was erased with the user.').waitFor();
  expect(await page.content()).not.toContain('Somebody Erasable');
  await expectNoErrors(window);
});

test('the Changes page loads a long feed in pages, and reports how far a search went', async () => {
  const realm = await addRealm('Crowd');
  const names = Array.from({ length: 230 }, (_, index) => `Person ${index}`);
  for (const name of names) await addUser(name, `${name.replace(' ', '')}@example.com`, realm);
  const window = await openSignedIn(service, `#/changes?realm=${realm}`);
  const { page } = window;
  await rows(window).filter({ hasText: 'Person 229' }).waitFor();
  await page.getByText('100 changes, searched back to').waitFor();
  const end = page.getByText('231 changes: everything the feed retains was searched.');
  while (!(await end.isVisible())) await showMore(window);
  await rows(window).filter({ hasText: 'realm' }).filter({ hasText: 'Crowd' }).waitFor();

  // A new row at the top does not move the visible rows.
  await rows(window).last().scrollIntoViewIfNeeded();
  const seen = await rows(window).last().boundingBox();
  await addUser('One more', 'more@example.com', realm);
  await page.getByText('232 changes').waitFor();
  expect(await rows(window).last().boundingBox()).toEqual(seen);

  await page.getByLabel('Actor').fill('nobody of this name');
  await page.getByText('No matching changes').waitFor();
  await page.getByText('0 changes: everything the feed retains was searched.').waitFor();
  await expectNoErrors(window);
}, 300_000);

test('the list of changes keeps the focus when new changes push the focused row out of view', async () => {
  const realm = await addRealm('Rush');
  const window = await openSignedIn(service, `#/changes?realm=${realm}`);
  const { page } = window;
  await live(window);
  await rows(window).filter({ hasText: 'Rush' }).focus();
  for (let index = 0; index < 60; index += 1)
    await addUser(`Visitor ${index}`, `v${index}@example.com`, realm);
  await rows(window).filter({ hasText: 'Visitor 59' }).waitFor();
  await page.keyboard.press('End');
  await rows(window).filter({ hasText: 'Rush' }).waitFor();
  await page.keyboard.press('Home');
  await rows(window).filter({ hasText: 'Visitor 59' }).waitFor();
  await expectNoErrors(window);
});

test('an invalid sign-in code leaves the filters of the Changes page and the address unchanged', async () => {
  const window = await openSignedIn(service, `#/changes?realm=${shop.realm}`);
  const { page } = window;
  await live(window);
  await page.getByLabel('Actor').fill('somebody');
  const address = /#\/changes\?.*somebody/;
  await page.waitForURL(address);
  await window.goto(`#code=${'A'.repeat(22)}`);
  await page
    .getByRole('status')
    .filter({ hasText: /more than a minute old/ })
    .waitFor();
  expect(page.url()).toMatch(address);
  expect(await page.getByLabel('Actor').inputValue()).toBe('somebody');
  await window.expectError(/status of 400/);
  await expectNoErrors(window);
});

describe('the list of changes', () => {
  test('the list of changes continues after a cut connection without missing a change', async () => {
    const proxy = await startTcpProxy(Number(new URL(service.url).port));
    const through = { url: `http://127.0.0.1:${proxy.port}`, token: service.token };
    const window = await openSignedIn(through, `#/changes?realm=${shop.realm}`);
    const { page } = window;
    await live(window);
    const nowhere = findPort();
    proxy.redirectTo(nowhere);
    proxy.cut();
    await page.getByText('Not live.').waitFor();
    await addUser('Came meanwhile', 'meanwhile@example.com');
    proxy.redirectTo(Number(new URL(service.url).port));
    await live(window);
    await rows(window).filter({ hasText: 'Came meanwhile' }).waitFor();
    expect(await rows(window).filter({ hasText: 'Came meanwhile' }).count()).toBe(1);
    await window.expectError(/ERR_/);
    await expectNoErrors(window);
  });

  test('the list of changes stops when the session loses changes:read, and keeps its rows', async () => {
    const { clientId, secret } = await service.client(WRITE_SCOPE);
    const token = await service.grant({ clientId, secret });
    const window = await openSignedIn(service, `#/changes?realm=${shop.realm}`, { token });
    const { page } = window;
    await live(window);
    const rights = { scopes: new Set(['users:read']), realms: '*' as const };
    await changeClient(service.db.engine.access, clientId, rights, service.clock);
    await page.getByText('This session does not have permission to do that.').waitFor();
    await page.getByText('The list is no longer updated.').waitFor();
    expect(await rows(window).count()).toBeGreaterThan(0);
    expect(await page.getByRole('navigation').getByRole('link', { name: 'Changes' }).count()).toBe(0);
    await window.expectError(/403/);
    await expectNoErrors(window);
  });

  test('the list of changes leads to the sign-in page when the session ends', async () => {
    const { clientId, secret } = await service.client(WRITE_SCOPE);
    const token = await service.grant({ clientId, secret });
    const window = await openSignedIn(service, `#/changes?realm=${shop.realm}`, { token });
    await live(window);
    const off = { disabledAt: service.clock.now() };
    await changeClient(service.db.engine.access, clientId, off, service.clock);
    await window.page.getByRole('dialog', { name: 'Sign in to the console' }).waitFor();
    await window.expectError(/401/);
    await expectNoErrors(window);
  });
});

test('the Changes page finds no change of an unknown realm', async () => {
  const window = await openSignedIn(service, '#/changes?realm=01900000-0000-7000-8000-000000000000');
  await window.page.getByText('No matching changes').waitFor();
  await expectNoErrors(window);
});

test('the Changes page finds a change by its record, its user and its day', async () => {
  const user = await addUser('Found by its ID', 'found@example.com');
  const window = await openSignedIn(service, `#/changes?realm=${shop.realm}`);
  const { page } = window;
  for (const label of ['Record ID', 'User ID']) {
    await page.getByLabel(label).fill(user);
    await page.getByText('1 change: everything the feed retains was searched.').waitFor();
    await rows(window).filter({ hasText: 'Found by its ID' }).waitFor();
    await page.getByLabel(label).fill('');
  }
  await page.getByLabel('To', { exact: true }).fill('1999-12-31');
  await page.getByText('No matching changes').waitFor();
  await page.getByLabel('From', { exact: true }).fill('1999-12-31');
  await page.getByLabel('To', { exact: true }).fill('');
  await rows(window).filter({ hasText: 'Found by its ID' }).waitFor();
  await page.getByLabel('Record ID').fill('no ID');
  await page.getByText('must be the identifier of a record').waitFor();
  await window.expectError(/400/);
  await expectNoErrors(window);
});

test('the Changes page of an empty service says that there are no changes yet', async () => {
  const fresh = await startService({ offline: 'true' });
  const window = await openSignedIn(fresh, '#/changes');
  await window.page.getByText('No changes yet').waitFor();
  await expectNoErrors(window);
});
