import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { systemAmbient } from '../src/ambient.ts';
import { UNICODE_VERSION } from '../src/domain/folding.ts';
import { membersOf } from '../src/domain/resource.ts';
import { user } from '../src/domain/resources.ts';
import { openEngine } from '../src/store/open.ts';
import { ground, land } from './contract/ground.ts';
import { freshFolder, userMembers } from './kit.ts';

test('a row says a newer Unicode only where all of its keys were made with it', async () => {
  const path = join(freshFolder(), 'labels.db');
  const program = { version: 'test', ambient: systemAmbient };
  const { records, close } = await openEngine({ engine: 'sqlite', path }, 'auto', program);
  const at = await ground(records);
  const db = new Database(path);
  db.run(`update user_info set unicode_version = '1.0', email_key = 'of another Unicode'`);
  const row = () => db.query(`select name_key, email_key, unicode_version from user_info`).get();

  const patch = (members: Record<string, unknown>) => ({
    members,
    revision: systemAmbient.mintRevision(),
    at: 1,
  });
  const key = [at.realm, at.user] as const;
  const write = (members: Record<string, unknown>) =>
    land(records, { op: 'patch', resource: user, key, patch: patch(members) });

  expect((await write({ name: 'JANE Roe' })).kind).toBe('landed');
  expect(row()).toEqual({
    name_key: 'jane roe',
    email_key: 'of another Unicode',
    unicode_version: '1.0',
  });
  const folded = membersOf(user).flatMap(({ name, placement }) => (placement.folded ? [name] : []));
  const all = Object.fromEntries(folded.map((name) => [name, userMembers[name as keyof typeof userMembers]]));
  expect((await write(all)).kind).toBe('landed');
  expect(row()).toEqual({
    name_key: 'jane doe',
    email_key: 'jane@example.com',
    unicode_version: UNICODE_VERSION,
  });
  db.close();
  close();
});
