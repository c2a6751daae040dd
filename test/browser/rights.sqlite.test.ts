import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { parseUuid, type Uuid } from '../../src/domain/id.ts';
import { openShop } from './open_console.ts';
import { placesOf, settled } from './places.ts';
import { expectSound, READING, signedIn, WRITING } from './signed_in.ts';
import { BROWSER_TEST_MS, type Visit, visit } from './visits.ts';

/** The console offers only the writes that a session may perform, and the API rejects the others. */

const { service, shop } = await openShop({ consoleClientCredentials: 'true' });

/** Buttons that write or open a form. */
const WRITES = /^(New|Edit|Add|Remove|Delete|Erase|Create|Save)\b/;
const writes = (page: Page) => page.getByRole('button', { name: WRITES });

/** How many of them a session with all scopes is offered, by page. */
const OFFERED = { realms: 1, realm: 4, users: 1, user: 13, oidcProfile: 2, passwordProfile: 2 } as const;
type Written = keyof typeof OFFERED;

describe.each(Object.entries(OFFERED))('the page %s', (place, count) => {
  test(`the page ${place} offers every write to a session with all scopes`, async () => {
    const window = await signedIn(service, placesOf(shop)[place as Written], { scope: `${WRITING} admin` });
    await window.page.getByRole('heading', { level: 1 }).waitFor();
    await window.page.waitForLoadState('networkidle');
    expect(await writes(window.page).count()).toBe(count);
    await window.close();
  });

  test(`the page ${place} offers no write to a session with read scopes`, async () => {
    const window = await signedIn(service, placesOf(shop)[place as Written], { scope: READING });
    await window.page.waitForLoadState('networkidle');
    expect(await writes(window.page).count()).toBe(0);
    await expectSound(window);
    await window.close();
  });
});

/** Further buttons that write, on the other pages. */
const OTHER_WRITES = /^(Import|Rotate|Disable|Enable|Withdraw|Send (POST|PUT|DELETE)|Resend|Send again)\b/;

/** The time-out of a visit to all pages in one window. */
const WALK_MS = 4 * BROWSER_TEST_MS;

/** The pages that offer a write in this window. */
async function placesToWrite(window: Visit): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [place, fragment] of Object.entries(placesOf(shop))) {
    await window.goto(fragment);
    await window.page.reload();
    await settled(window);
    const offered = window.page.getByRole('button', { name: OTHER_WRITES }).or(writes(window.page));
    if ((await offered.count()) > 0) found.push(place);
  }
  return found;
}

test(
  'only pages of editable records offer writes to a session with all scopes',
  async () => {
    const writer = await signedIn(service, '#/', { scope: `${WRITING} admin` });
    expect(await placesToWrite(writer)).toEqual([
      ...['realms', 'realm', 'users', 'user', 'strange', 'oidcProfile', 'passwordProfile'],
      ...['clients', 'client', 'webhooks', 'webhook'],
    ]);
    await writer.close();
  },
  WALK_MS,
);

test(
  'no page offers a write to a session with read scopes',
  async () => {
    const reader = await signedIn(service, '#/', { scope: READING });
    expect(await placesToWrite(reader)).toEqual([]);
    await reader.expectTrouble(/status of 403/);
    await expectSound(reader);
    await reader.close();
  },
  WALK_MS,
);

test('the API rejects the writes of the console from a token with read scopes', async () => {
  const token = await service.token(READING);
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
    const asked = [
      await service.post(above, token, { data: {} }),
      ...(path === realms
        ? []
        : [await service.put(path, token, { data: {} }), await service.del(path, token)]),
    ];
    expect([path, asked.map(({ status }) => status)]).toEqual([path, asked.map(() => 403)]);
  }
  const erasure = { data: { realm_id: shop.realm, user_id: shop.user } };
  expect((await service.post('/admin/v1/erasures', token, erasure)).status).toBe(403);
});

test('a session limited to some realms can edit those, but create or delete none', async () => {
  const window = await signedIn(service, placesOf(shop).realms, { realms: [shop.realm] });
  const { page } = window;
  await page.getByRole('link', { name: 'Buyer Organization' }).waitFor();
  expect(await writes(page).count()).toBe(0);
  await window.goto(placesOf(shop).realm);
  await page.getByRole('button', { name: 'New OIDC profile' }).waitFor();
  await page.getByRole('button', { name: 'New password profile' }).waitFor();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  expect(await page.getByRole('button', { name: 'Delete', exact: true }).count()).toBe(0);
  await page.getByLabel('Name').fill('Limited Organization');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { name: 'Limited Organization', level: 1 }).waitFor();
  expect(await page.getByRole('button', { name: 'Edit', exact: true }).count()).toBe(1);
  await expectSound(window);
  await window.goto(placesOf(shop).oidcProfile);
  await page.getByRole('button', { name: 'Delete', exact: true }).waitFor();
  await expectSound(window);
  await window.close();
  const token = await service.token(WRITING, new Set([parseUuid(shop.realm) as Uuid]));
  const realms = '/v2/authentication-realms';
  const made = await service.post(realms, token, { data: { type: 'authentication-realm', name: 'Another' } });
  expect([made.status, (await service.del(`${realms}/${shop.realm}`, token)).status]).toEqual([403, 403]);
});

test('a session limited to some realms is told that an import cannot create one', async () => {
  const window = await signedIn(service, '#/transfer', { realms: [shop.realm] });
  const { page } = window;
  const line = JSON.stringify({ type: 'authentication-realm', id: shop.realm, name: 'One more' });
  await page
    .getByLabel('File written by authrealm export')
    .setInputFiles({ name: 'realm.ndjson', mimeType: 'text/plain', buffer: Buffer.from(line) });
  await page.getByText('This session is limited to some realms and cannot create one').waitFor();
  expect(await page.getByRole('button', { name: 'Import', exact: true }).count()).toBe(0);
  await page.getByRole('combobox', { name: 'Into' }).selectOption(shop.realm);
  await page.getByRole('button', { name: 'Import', exact: true }).waitFor();
  await expectSound(window);
  await window.close();
});

test('a session without access to links, profiles and changes sees the user and what is hidden', async () => {
  const window = await signedIn(service, placesOf(shop).user, { scope: 'users:read' });
  const { page } = window;
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor();
  await page.getByText('Not visible to this session: OIDC links, password links.').waitFor();
  expect(await page.getByRole('heading', { name: 'History' }).count()).toBe(0);
  expect(await page.getByRole('link', { name: 'Realms' }).count()).toBe(1);
  await expectSound(window);
  await window.close();
});

test('a scope lost during an edit is reported, and its controls disappear', async () => {
  const { clientId, secret } = await service.client(WRITING);
  const window = await visit(service.url);
  const { page } = window;
  await window.goto(placesOf(shop).user);
  await page.getByLabel('Client ID').fill(clientId);
  await page.getByLabel('Client secret').fill(secret);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByLabel('Given name').fill('Janet');
  const admin = await service.token('admin');
  const scopes = READING.split(' ');
  expect((await service.put(`/admin/v1/clients/${clientId}`, admin, { data: { scopes } })).status).toBe(200);
  service.clock.advance(1_000);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('This session does not have permission to do that.').waitFor();
  expect(await page.getByLabel('Given name').inputValue()).toBe('Janet');
  await window.expectTrouble(/status of 403/);
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('button', { name: 'Edit', exact: true }).waitFor({ state: 'detached' });
  await expectSound(window);
  await window.close();
});
