import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { eventNumber } from '../../src/model/log/event.ts';
import { user } from '../../src/model/resources.ts';
import { freshDatabase } from '../support/database.ts';
import { storedId, withChanges } from '../support/log_rows.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { freshFolder } from '../support/service.ts';
import { runRandomWrites } from './random_service.ts';
import { findInconsistencies, type WriteAttempt } from './write_history.ts';

/** A short run of `test/soak/model.ts`, and the errors that its checks find in a manipulated database. */

const database = await freshDatabase();
let history: readonly WriteAttempt[] = [];

test('records, changes, acknowledgements and a model agree after random writes and crashes', async () => {
  const seed = freshSeed();
  const report = await runRandomWrites({
    database,
    logFile: join(freshFolder(), 'model.log'),
    operations: 500,
    kills: 3,
    clients: 3,
    processes: 2,
    chance: seededRandom(seed),
  });
  expect([seed, report.complaints]).toEqual([seed, []]);
  const { acknowledged, refused, unknown } = report.count;
  expect(acknowledged).toBeGreaterThan(150);
  expect(refused).toBeGreaterThan(10);
  expect(unknown).toBeLessThan(100);
  ({ history: history } = report);
  expect(await findInconsistencies(database, history)).toEqual([]);
}, 300_000);

/** The request IDs of acknowledged writes, as an SQL list. A write in flight at a kill may be stored without an acknowledgement. */
function acknowledgedIds(): string {
  const acknowledged = history.filter(({ outcome }) => outcome === 'acknowledged');
  return acknowledged.flatMap(({ ids }) => ids.map((id) => `'${id}'`)).join();
}

/** Manipulations of the database, each with the complaint that the checks must report. */
const MANIPULATIONS: [what: string, sql: () => string, complaint: RegExp][] = [
  [
    'a record without changes',
    () => `update user_info set id = ${storedId(database.address.engine, `'018f3a1e-0000-7000-8000-000000000000'`)}
       where id in (select id from user_info limit 1)`,
    /^user-authentication-info .* differs from its changes$/,
  ],
  [
    'a record removed without a change',
    () => 'delete from user_info where id in (select id from user_info limit 1)',
    /^user-authentication-info .* has changes and no record$/,
  ],
  [
    'a record updated without a change',
    () => `update user_info set revision = '0123456789abcdef' where id in (select id from user_info limit 1)`,
    /^user-authentication-info .* differs from its changes$/,
  ],
  [
    'a change without a request',
    () => `update log_entry set request_id = 'unknown-request'
       where (realm_id, seq) in (select realm_id, seq from log_entry where at is not null limit 1)`,
    /^no request was sent for the changes of unknown-request$/,
  ],
  [
    'an acknowledged write whose change is lost',
    () => `${withChanges(database.address.engine)} delete from log_entry where (realm_id, seq) in (
       select stored_realm_id, seq from change where request_id = (select request_id from change
         where event like '%-info.updated' and members <> 'updated_at' and request_id in (${acknowledgedIds()}) limit 1))`,
    /was acknowledged and has 0 commits$/,
  ],
  [
    'an update of a deleted record',
    () => `insert into log_entry (realm_id, seq, event, record_id, revision, user_id, at, actor, request_id)
       select realm_id, seq + 1000000, ${eventNumber(`${user.name}.updated`)}, record_id, revision, user_id, at, actor,
       request_id from log_entry where event = ${eventNumber(`${user.name}.deleted`)} and at is not null limit 1`,
    /is updated out of order$/,
  ],
];

test.each(MANIPULATIONS)('the model check finds %s', async (_, sql, complaint) => {
  const copy = await database.copy();
  expect(await copy.tamper(sql())).toBeGreaterThan(0);
  expect(await findInconsistencies(copy, history)).toContainEqual(expect.stringMatching(complaint));
});

test('the model check finds a rejected write that has a change', async () => {
  const committed = history.find(
    ({ outcome, ids }) => outcome === 'acknowledged' && ids.length === 1,
  ) as WriteAttempt;
  const claimed = history.map((attempt) =>
    attempt === committed ? { ...attempt, outcome: 'rejected' as const } : attempt,
  );
  expect(await findInconsistencies(database, claimed)).toEqual([
    `${committed.ids[0]} was rejected and has a change`,
  ]);
});

test('the model check finds a write that follows one sent after its acknowledgement', async () => {
  const early = history.find(({ outcome }) => outcome === 'acknowledged') as WriteAttempt;
  const claimed = history.map((attempt) =>
    attempt === early ? { ...attempt, from: Number.MAX_VALUE } : attempt,
  );
  const complaints = await findInconsistencies(database, claimed);
  expect(complaints).toContainEqual(
    expect.stringMatching(
      new RegExp(`was acknowledged before ${early.ids[0]} was sent, and follows it in the log$`),
    ),
  );
});
