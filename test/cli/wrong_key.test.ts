import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { createFixture } from '../support/service.ts';

test('a start with a wrong key over a database without proof stores none, and the right key is accepted afterwards', async () => {
  const database = await freshDatabase();
  const db = await openDatabase(database.settings(), systemClock);
  await createFixture(db);
  await db.engine.close();
  await database.tamper('delete from keyring');
  const wrong = join(freshFolder(), 'wrong.key');
  writeFileSync(wrong, Buffer.from(systemClock.randomBytes(32)).toString('hex'), { mode: 0o600 });
  const args = ['serve', '--port', '0', ...database.args, '--master-key-file', wrong];
  const { code, stderr } = await runCommand([AUTHREALM, ...args]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]+ does not open [^\n]+\n$/)]);
  expect(await database.query('select 1 from keyring')).toEqual([]);
  const reopened = await openDatabase(database.settings(), systemClock);
  expect(await reopened.engine.access.keyChecks()).toHaveLength(1);
  await reopened.engine.close();
});
