import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../src/app/open_database.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openFreshDatabase } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { runAuthrealm } from '../support/processes.ts';
import { createFixture } from '../support/service.ts';

test.each([
  ['without proof', /^[^\n]+ does not open [^\n]+\n$/],
  ['with a proof', /^[^\n]+ does not match this database[^\n]+\n$/],
] as const)(
  'a start with the key of another installation over a database %s changes nothing, and the right key is accepted afterwards',
  async (proof, sentence) => {
    const { database, db } = await openFreshDatabase();
    await createFixture(db);
    await db.engine.close();
    if (proof === 'without proof') await database.tamper('delete from keyring');
    const stored = await database.query('select * from keyring');
    const foreign = join(freshFolder(), 'foreign.key');
    writeFileSync(foreign, Buffer.from(systemClock.randomBytes(32)).toString('hex'), { mode: 0o600 });
    const args = ['serve', '--port', '0', ...database.args, '--master-key-file', foreign];
    const { code, stderr } = await runAuthrealm([...args]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
    expect(await database.query('select * from keyring')).toEqual(stored);
    const reopened = await openDatabase(database.settings(), systemClock);
    expect(await reopened.engine.access.keyChecks()).toHaveLength(1);
    await reopened.engine.close();
  },
);
