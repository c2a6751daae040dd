import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { freshDatabase } from '../support/database.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { freshFolder } from '../support/service.ts';
import { type Asked, complaintsOf } from './ledger.ts';
import { runAtRandom } from './random_service.ts';

/** A short run of `test/soak/model.ts`, and what its checks find in a database that was tampered with. */

const database = await freshDatabase();
let ledger: readonly Asked[] = [];

test('records, changes, acknowledgements and a model agree after random writes and crashes', async () => {
  const seed = freshSeed();
  const ran = await runAtRandom({
    database,
    logFile: join(freshFolder(), 'model.log'),
    operations: 500,
    kills: 3,
    clients: 3,
    processes: 2,
    chance: seededRandom(seed),
  });
  expect([seed, ran.complaints]).toEqual([seed, []]);
  const { acknowledged, refused, unknown } = ran.count;
  expect(acknowledged).toBeGreaterThan(150);
  expect(refused).toBeGreaterThan(10);
  expect(unknown).toBeLessThan(100);
  ({ ledger } = ran);
  expect(await complaintsOf(database, ledger)).toEqual([]);
}, 300_000);

/** What each change behind the back of the service makes the checks say. */
const TAMPERED: [what: string, sql: string, complaint: RegExp][] = [
  [
    'a record that was never announced',
    `update user_info set id = '018f3a1e-0000-7000-8000-000000000000'
       where id in (select id from user_info limit 1)`,
    /^user-authentication-info .* is not what its changes say$/,
  ],
  [
    'a record that is gone without a change',
    'delete from user_info where id in (select id from user_info limit 1)',
    /^the changes of user-authentication-info .* made no record$/,
  ],
  [
    'a record that moved without a change',
    `update user_info set revision = '0123456789abcdef' where id in (select id from user_info limit 1)`,
    /^user-authentication-info .* is not what its changes say$/,
  ],
  [
    'a change that nobody asked for',
    `update change set request_id = 'somebody' where (realm_id, seq) in (select realm_id, seq from change limit 1)`,
    /^nobody asked for the changes of somebody$/,
  ],
  [
    'an acknowledged write whose change is lost',
    `delete from change where request_id = (select request_id from change where event like '%-info.updated'
       and members <> 'updated_at' limit 1)`,
    /was acknowledged and left 0 commits$/,
  ],
  [
    'a change of a record that was removed before',
    `insert into change (realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at)
       select realm_id, seq + 1000000, replace(event, 'deleted', 'updated'), user_id, record_id, revision, members,
       actor, request_id, at from change where event like '%.deleted' limit 1`,
    /is updated out of turn$/,
  ],
];

test.each(TAMPERED)('%s is found', async (_, sql, complaint) => {
  const copy = await database.copy();
  expect(await copy.tamper(sql)).toBeGreaterThan(0);
  expect(await complaintsOf(copy, ledger)).toContainEqual(expect.stringMatching(complaint));
});

test('a refused write that left a change is found', async () => {
  const landed = ledger.find(({ outcome, ids }) => outcome === 'done' && ids.length === 1) as Asked;
  const claimed = ledger.map((asked) =>
    asked === landed ? { ...asked, outcome: 'refused' as const } : asked,
  );
  expect(await complaintsOf(database, claimed)).toEqual([`${landed.ids[0]} was refused and left a change`]);
});

test('a write that stands behind one which was sent after it was acknowledged is found', async () => {
  const early = ledger.find(({ outcome }) => outcome === 'done') as Asked;
  const claimed = ledger.map((asked) => (asked === early ? { ...asked, from: Number.MAX_VALUE } : asked));
  const complaints = await complaintsOf(database, claimed);
  expect(complaints).toContainEqual(
    expect.stringMatching(
      new RegExp(`was acknowledged before ${early.ids[0]} was sent, and stands behind it$`),
    ),
  );
});
