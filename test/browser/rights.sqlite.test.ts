import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { parseUuid, type Uuid } from '../../src/model/id.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE, WRITE_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow } from './console_window.ts';
import { openShop } from './open_console.ts';
import { type PageName, pagePaths, waitForPage } from './page_paths.ts';

/** The console offers only the writes that a session may perform, and the API rejects the others. */

const { service, shop } = await openShop();

/** Buttons that write or open a form. */
const WRITES = /^(New|Edit|Add|Move|Merge|Remove|Delete|Erase|Create|Save)\b/;
const writes = (page: Page) => page.getByRole('button', { name: WRITES });

/** How many of them a session with all scopes is offered, by page. */
const OFFERED = { realms: 1, realm: 4, users: 1, user: 18, oidcProfile: 2, passwordProfile: 2 } as const;
type Written = keyof typeof OFFERED;

describe.each(Object.entries(OFFERED))('the page %s', (place, count) => {
  test(`the page ${place} offers every write to a session with all scopes`, async () => {
    const window = await openSignedIn(service, pagePaths(shop)[place as Written], {
      scope: `${WRITE_SCOPE} admin`,
    });
    await writes(window.page)
      .nth(count - 1)
      .waitFor();
    await window.page.waitForLoadState('networkidle');
    expect(await writes(window.page).count()).toBe(count);
  });

  test(`the page ${place} offers no write to a session with read scopes`, async () => {
    const window = await openSignedIn(service, pagePaths(shop)[place as Written], { scope: READ_SCOPE });
    await window.page.waitForLoadState('networkidle');
    expect(await writes(window.page).count()).toBe(0);
    await expectNoErrors(window);
  });
});

/** Further buttons that write, on the other pages. */
const OTHER_WRITES =
  /^(Import|Rotate|Disable|Enable|Sign out everywhere|Withdraw|Send (POST|PUT|DELETE)|Resend|Send again)\b/;

/** The time-out of a visit to all pages in one window. */
const WALK_MS = 4 * BROWSER_TEST_MS;

/** Expects that these pages, and no others, offer a write in this window. */
async function expectPlacesToWrite(window: ConsoleWindow, places: readonly PageName[]): Promise<void> {
  for (const [place, fragment] of Object.entries(pagePaths(shop))) {
    await window.goto(fragment);
    await window.page.reload();
    const offered = window.page.getByRole('button', { name: OTHER_WRITES }).or(writes(window.page));
    if (places.includes(place as PageName)) {
      await offered.first().waitFor();
    } else {
      await waitForPage(window);
      expect([place, await offered.count()]).toEqual([place, 0]);
    }
  }
}

test(
  'only pages of editable records offer writes to a session with all scopes',
  async () => {
    const writer = await openSignedIn(service, '#/', { scope: `${WRITE_SCOPE} admin` });
    await expectPlacesToWrite(writer, [
      ...(['realms', 'realm', 'users', 'user', 'unlinked', 'strange'] as const),
      ...(['oidcProfile', 'passwordProfile'] as const),
      ...(['clients', 'client', 'access', 'webhooks', 'webhook'] as const),
    ]);
  },
  WALK_MS,
);

test(
  'no page offers a write to a session with read scopes',
  async () => {
    const reader = await openSignedIn(service, '#/', { scope: READ_SCOPE });
    await expectPlacesToWrite(reader, []);
    await reader.expectError(/status of 403/);
    await expectNoErrors(reader);
  },
  WALK_MS,
);

test('the API rejects the writes of the console from a token with read scopes', async () => {
  const token = await service.token(READ_SCOPE);
  const realms = '/v2/authentication-realms';
  const user = `${realms}/${shop.realm}/user-authentication-info/${shop.user}`;
  const paths = [
    realms,
    `${realms}/${shop.realm}`,
    `${realms}/${shop.realm}/oidc-profiles/${shop.oidcProfile}`,
    `${realms}/${shop.realm}/password-profiles/${shop.passwordProfile}`,
    user,
    `${user}/user-authentication-oidc-profile-info/${shop.subjectLink}`,
    `${user}/user-authentication-password-profile-info/${shop.usernameLink}`,
  ];
  for (const path of paths) {
    const above = path === realms ? path : path.slice(0, path.lastIndexOf('/'));
    const responses = [
      await service.post(above, token, { data: {} }),
      ...(path === realms
        ? []
        : [await service.put(path, token, { data: {} }), await service.del(path, token)]),
    ];
    expect([path, responses.map(({ status }) => status)]).toEqual([path, responses.map(() => 403)]);
  }
  const erasure = { data: { realm_id: shop.realm, user_id: shop.user } };
  expect((await service.post('/admin/v1/erasures', token, erasure)).status).toBe(403);
});

test('a session limited to some realms can edit those, but create or delete none', async () => {
  const window = await openSignedIn(service, pagePaths(shop).realms, { realms: [shop.realm] });
  const { page } = window;
  await page.getByRole('link', { name: 'Buyer Organization' }).waitFor();
  expect(await writes(page).count()).toBe(0);
  await window.goto(pagePaths(shop).realm);
  await page.getByRole('button', { name: 'New provider' }).waitFor();
  await page.getByRole('button', { name: 'New password profile' }).waitFor();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  expect(await page.getByRole('button', { name: 'Delete', exact: true }).count()).toBe(0);
  await page.getByLabel('Name').fill('Limited Organization');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { name: 'Limited Organization', level: 1 }).waitFor();
  expect(await page.getByRole('button', { name: 'Edit', exact: true }).count()).toBe(1);
  await expectNoErrors(window);
  await window.goto(pagePaths(shop).oidcProfile);
  await page.getByRole('button', { name: 'Delete', exact: true }).waitFor();
  await expectNoErrors(window);
  await window.close();
  const token = await service.token(WRITE_SCOPE, new Set([parseUuid(shop.realm) as Uuid]));
  const realms = '/v2/authentication-realms';
  const made = await service.post(realms, token, { data: { type: 'authentication-realm', name: 'Another' } });
  expect([made.status, (await service.del(`${realms}/${shop.realm}`, token)).status]).toEqual([403, 403]);
});

test('a session without access to links, profiles and changes sees the user and which parts are hidden', async () => {
  const window = await openSignedIn(service, pagePaths(shop).user, { scope: 'users:read' });
  const { page } = window;
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
  await page.getByText('Not visible to this session: links, usernames.').waitFor();
  expect(await page.getByRole('heading', { name: 'History' }).count()).toBe(0);
  expect(await page.getByRole('link', { name: 'Realms' }).count()).toBe(1);
  await expectNoErrors(window);
});

test('a scope lost during an edit is reported, and its controls disappear', async () => {
  const { clientId, secret } = await service.client(WRITE_SCOPE);
  const token = await service.grant({ clientId, secret });
  const window = await openSignedIn(service, pagePaths(shop).user, { token });
  const { page } = window;
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByLabel('Given name').fill('Janet');
  const admin = await service.token('admin');
  const scopes = READ_SCOPE.split(' ');
  expect((await service.put(`/admin/v1/clients/${clientId}`, admin, { data: { scopes } })).status).toBe(200);
  service.clock.advance(1_000);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('This session does not have permission to do that.').waitFor();
  expect(await page.getByLabel('Given name').inputValue()).toBe('Janet');
  await window.expectError(/status of 403/);
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('button', { name: 'Edit', exact: true }).waitFor({ state: 'detached' });
  await expectNoErrors(window);
});
