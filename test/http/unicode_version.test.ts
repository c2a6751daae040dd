import { expect, test } from 'bun:test';
import { membersOf } from '../../src/model/resource.ts';
import { user } from '../../src/model/resources.ts';
import { UNICODE_VERSION } from '../../src/model/text/folding.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { commitWrites, createRealmFixture } from '../records/contract/store_fixtures.ts';
import { freshDatabase } from '../support/database.ts';
import { userMembers } from '../support/service.ts';

test('a user gets the newer Unicode version only when all of its folded keys are written', async () => {
  const database = await freshDatabase();
  const { records, close } = await database.open();
  const at = await createRealmFixture(records);
  await database.query(`update user_info set unicode_version = '1.0', email_key = 'of another Unicode'`);
  const row = async () =>
    (await database.query('select name_key, email_key, unicode_version from user_info'))[0];

  const patch = (members: Record<string, unknown>) => ({
    members,
    revision: systemClock.mintRevision(),
    at: 1,
  });
  const key = [at.realm, at.user] as const;
  const write = (members: Record<string, unknown>) =>
    commitWrites(records, { op: 'patch', resource: user, key, patch: patch(members) });

  expect((await write({ name: 'JANE Roe' })).kind).toBe('written');
  expect(await row()).toEqual({
    name_key: 'jane roe',
    email_key: 'of another Unicode',
    unicode_version: '1.0',
  });
  const folded = membersOf(user).flatMap(({ name, annotation }) =>
    annotation.foldedKeyColumn ? [name] : [],
  );
  const all = Object.fromEntries(folded.map((name) => [name, userMembers[name as keyof typeof userMembers]]));
  expect((await write(all)).kind).toBe('written');
  expect(await row()).toEqual({
    name_key: 'jane doe',
    email_key: 'jane@example.com',
    unicode_version: UNICODE_VERSION,
  });
  await close();
});
