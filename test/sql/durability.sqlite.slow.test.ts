import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { findInconsistencies } from '../support/consistency.ts';
import { importTarget } from '../support/killed_import.ts';
import { missingIds } from '../support/killed_process.ts';
import { writersTarget } from '../support/killed_writers.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { createFixture, databaseFile, freshFolder, startService } from '../support/service.ts';

/** `npm run soak` runs fifty larger ones. */
const ROUNDS = 5;
const USERS = 5_000;

test.each([
  ['an import', (folder: string) => importTarget(folder, USERS)],
  ['two processes that write single records', writersTarget],
] as const)(
  'acknowledged writes survive killing %s at any moment',
  async (_, open) => {
    const seed = freshSeed();
    const chance = seededRandom(seed);
    const target = await open(freshFolder());
    for (let round = 1; round <= ROUNDS; round += 1) {
      const { problems } = await target.round(chance);
      expect({ seed, round, complaints: problems }).toEqual({ seed, round, complaints: [] });
    }
  },
  300_000,
);

/** A statement that damages a database, and the complaint it must raise. */
const DAMAGES: readonly (readonly [string, RegExp])[] = [
  ['delete from log_entry where seq = 2', /^the clock of realm .* differ$/],
  ['update realm_clock set seq = seq + 1', /^the clock of realm .* differ$/],
  [`update user_info set revision = '0'`, /^user-authentication-info .* has no change with its revision$/],
  [
    'delete from oidc_profile_info',
    /^user-authentication-oidc-profile-info .* has changes and does not exist$/,
  ],
  [
    'pragma foreign_keys = off; delete from user_info',
    /^a row of oidc_profile_info refers to a missing one$/,
  ],
];

test.each(DAMAGES)('the check after a kill reports the damage of: %s', async (sql, complaint) => {
  const service = await startService();
  const path = databaseFile(service);
  const { user } = await createFixture(service.db);
  await service.stop();
  expect(findInconsistencies(path)).toEqual([]);
  expect(missingIds(path, [user])).toEqual([]);
  const db = new Database(path);
  db.run(sql);
  db.close();
  expect(findInconsistencies(path)).toContainEqual(expect.stringMatching(complaint));
});

test('the check after a kill reports a lost record and a corrupt page', async () => {
  const service = await startService();
  const path = databaseFile(service);
  await createFixture(service.db);
  await service.stop();
  expect(missingIds(path, ['lost'])).toEqual(['lost']);
  const db = new Database(path);
  db.run('pragma wal_checkpoint(truncate)');
  const index = `select rootpage from sqlite_schema where name = 'oidc_profile_info_subject'`;
  const [page] = db.query<{ rootpage: number }, []>(index).all();
  db.close();
  const bytes = Buffer.from(await Bun.file(path).arrayBuffer());
  const cells = ((page?.rootpage ?? 1) - 1) * 4096 + 8;
  bytes.fill(0, cells, cells + 4);
  const damaged = join(freshFolder(), 'damaged.db');
  await Bun.write(damaged, bytes);
  expect(findInconsistencies(damaged).length).toBeGreaterThan(0);
});
