import { expect, test } from 'bun:test';
import { user } from '../../src/model/resources.ts';
import { createRecord, kindOf } from '../support/resource_cases.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE, WRITE_SCOPE } from './console_session.ts';
import { openShop } from './open_console.ts';

/** The page of a user that no longer exists. */

const { service, shop } = await openShop();
const token = await service.token(`${WRITE_SCOPE} admin`);
const collection = `/v2/authentication-realms/${shop.realm}/user-authentication-info`;

const createUser = async () => {
  const data = { name: 'Going', email: 'going@example.com' };
  return (await createRecord(service, token, { kind: kindOf(user), home: shop, data })).id;
};

async function openGone(id: string, scope: string) {
  const window = await openSignedIn(service, `#/realms/${shop.realm}/users/${id}`, { scope });
  await window.expectError(/status of 404/);
  return window;
}

test('the page of a deleted user says when it was deleted and by whom, and the same of an erased one', async () => {
  const deleted = await createUser();
  expect((await service.del(`${collection}/${deleted}`, token)).status).toBe(204);
  const window = await openGone(deleted, READ_SCOPE);
  await window.page.getByText('This user no longer exists').waitFor();
  expect(
    await window.page
      .getByRole('status')
      .filter({ hasText: /^Deleted on .+ by / })
      .count(),
  ).toBe(1);
  expect(await window.page.getByRole('button', { name: 'Edit' }).count()).toBe(0);
  await expectNoErrors(window);

  const erased = await createUser();
  const data = { realm_id: shop.realm, user_id: erased };
  expect((await service.post('/admin/v1/erasures', token, { data })).ok).toBe(true);
  const other = await openGone(erased, `${READ_SCOPE} admin`);
  await other.page
    .getByRole('status')
    .filter({ hasText: /^Erased on .+ by test\.$/ })
    .waitFor();
  await expectNoErrors(other);
});

test('the page of a user that never existed, or was deleted for a session without changes:read, says not found', async () => {
  const deleted = await createUser();
  expect((await service.del(`${collection}/${deleted}`, token)).status).toBe(204);
  for (const [id, scope] of [
    [shop.realm, READ_SCOPE],
    [deleted, READ_SCOPE.replace(' changes:read', '')],
  ] as const) {
    const window = await openGone(id, scope);
    await window.page.getByText('Not found, or not visible to this session.').waitFor();
    expect(await window.page.getByText('no longer exists').count()).toBe(0);
    await expectNoErrors(window);
  }
});
