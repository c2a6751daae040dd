import { describe, expect, test } from 'bun:test';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import { type Checkpoint, checkpointLine, readLine } from '../../src/log/checkpoint.ts';
import { openLogReading } from '../../src/log/reading.ts';
import { verifyLogs } from '../../src/log/verify.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openFreshDatabase, type TestDatabase } from '../support/database.ts';
import { appendUntagged, ofRealm, ofUser } from '../support/log_rows.ts';
import { createFixture, type Fixture, insertRecord, userMembers } from '../support/service.ts';

/** Tampering with the database but without the master key, and erasures. */

interface TestLog {
  readonly database: TestDatabase;
  readonly db: OpenDatabase;
  readonly fixture: Fixture;
  /** A condition on `log_entry` with the realm as its parameter. */
  readonly inLog: string;
}

async function withLog(work: (testLog: TestLog) => Promise<void>): Promise<void> {
  const { database, db } = await openFreshDatabase();
  try {
    const inLog = ofRealm(database.address.engine);
    await work({ database, db, fixture: await createFixture(db), inLog });
  } finally {
    await db.engine.close();
  }
}

async function verify(db: OpenDatabase, checkpoints: readonly Checkpoint[] = []) {
  const { now } = systemClock;
  const { findings } = await verifyLogs({ store: db.engine.log, keys: db.logKeys, checkpoints, now });
  return findings.map(({ message }) => message);
}

const erase = ({ db, fixture }: TestLog) =>
  db.engine.records.erase({
    key: [fixture.realm, fixture.user],
    origin: { actor: 'test', requestId: undefined, address: undefined, at: systemClock.now() },
    mintRevision: systemClock.mintRevision,
    auditEntry: createAuditEntry('user.erased', { object: fixture.user, detail: {} }, systemClock),
  });

const rename = ({ db, fixture }: TestLog, name: string) =>
  db.engine.records.commit([
    {
      op: 'patch',
      resource: user,
      key: [fixture.realm, fixture.user],
      patch: { members: { name }, revision: systemClock.mintRevision(), at: systemClock.now() },
      change: {
        event: `${user.name}.updated`,
        realm: fixture.realm,
        user: fixture.user,
        id: fixture.user,
        revision: systemClock.mintRevision(),
        members: ['name'],
        actor: 'test',
        requestId: undefined,
        address: undefined,
        at: systemClock.now(),
      },
    },
  ]);

describe('tampering without the master key', () => {
  test('verify finds a removed end of a chain, also after the next write', () =>
    withLog(async ({ database, db, fixture, inLog }) => {
      await database.tamper('update realm_clock set tag = null where realm_id = ?', fixture.realm);
      await database.tamper(
        `update log_entry set actor = 'nobody' where ${inLog} and seq = 2`,
        fixture.realm,
      );
      expect(await verify(db)).not.toEqual([]);
      await createFixture(db, { realm: fixture.realm });
      expect(await verify(db)).toContainEqual(expect.stringContaining('the log was recreated'));
    }));

  test('verify finds a removed log', () =>
    withLog(async ({ database, db, fixture, inLog }) => {
      await database.tamper(`delete from log_entry where ${inLog}`, fixture.realm);
      await database.tamper('delete from realm_clock where realm_id = ?', fixture.realm);
      expect(await verify(db)).toEqual(['this log was started, but it does not exist']);
    }));

  test('verify finds an entry without a tag, also after the next start and the next write', () =>
    withLog(async ({ database, db, fixture }) => {
      await database.tamper(appendUntagged(database.address.engine), fixture.realm);
      await database.tamper('update realm_clock set seq = seq + 1 where realm_id = ?', fixture.realm);
      expect(await verify(db)).toContain('this entry, or one before it, was changed or inserted');
      await (await openDatabase(database.settings(), systemClock)).engine.close();
      expect(await verify(db)).toContain('this entry, or one before it, was changed or inserted');
      await createFixture(db, { realm: fixture.realm });
      expect(await verify(db)).toContain('this entry, or one before it, was changed or inserted');
      expect(await database.query('select 1 from log_entry where tag is null')).toHaveLength(1);
    }));

  test('verify finds a log whose chain was removed, with and without its entries', () =>
    withLog(async ({ database, db, fixture, inLog }) => {
      await database.tamper(
        'update realm_clock set tag = null, anchor_tag = null, anchor_mac = null where realm_id = ?',
        fixture.realm,
      );
      expect(await verify(db)).toContain('the log of this entry has no chain');
      await database.tamper(`delete from log_entry where ${inLog}`, fixture.realm);
      expect(await verify(db)).toEqual(['this log was started, but its chain was removed']);
    }));

  test('verify finds an entry inserted after the log head', () =>
    withLog(async ({ database, db, fixture, inLog }) => {
      await database.tamper(
        `insert into log_entry (realm_id, seq, event, revision, user_id, at, actor, tag)
           select realm_id, seq + 9, event, revision, user_id, at, actor, tag
           from log_entry where ${inLog} order by seq desc limit 1`,
        fixture.realm,
      );
      expect(await verify(db)).toEqual(['this entry is after the head of the log']);
    }));

  test('verify finds a deleted user key without an erasure', () =>
    withLog(async ({ database, db, fixture }) => {
      await database.tamper(`delete from user_salt where ${ofUser(database.address.engine)}`, fixture.user);
      await database.tamper(
        'insert into erasure (realm_id, user_id, at) values (?, ?, 1)',
        fixture.realm,
        fixture.user,
      );
      expect(await verify(db)).toContainEqual(expect.stringContaining('was not erased later'));
    }));

  test('backdated entries are not removed by retention', () =>
    withLog(async ({ database, db, fixture, inLog }) => {
      await database.tamper(`update log_entry set at = 1 where ${inLog} and seq <= 3`, fixture.realm);
      const trimming = db.engine.log.trim(fixture.realm, 1_000);
      expect(await trimming.then(() => 'done', String)).toContain(
        'an expired entry of a log was tampered with',
      );
      expect(await database.query('select 1 from log_entry where at = 1')).toHaveLength(3);
    }));

  test('tampering is not hidden by a later checkpoint of the same position', () =>
    withLog(async ({ db, fixture }) => {
      const head = await db.engine.log.head(fixture.realm);
      const line = readLine(
        checkpointLine(head ? [head] : [], { at: systemClock.now(), retentionDays: 90 }, db.logKeys),
        db.logKeys,
      );
      const [now] = (line.kind === 'checkpoint' ? line.logs : []) as [Checkpoint];
      const before = { ...now, tag: '00'.repeat(32) };
      expect(await verify(db, [before, now])).toContainEqual(
        expect.stringContaining('differs from a checkpoint'),
      );
    }));
});

describe('an erasure', () => {
  test('an erasure in one commit with a write before it leaves no user key and no readable entry', () =>
    withLog(async (testLog) => {
      const { database, db, fixture } = testLog;
      await Promise.all([rename(testLog, 'Written at the last moment'), erase(testLog)]);
      expect(
        await database.query(
          `select 1 from user_salt where ${ofUser(database.address.engine)}`,
          fixture.user,
        ),
      ).toEqual([]);
      const reading = openLogReading(db.engine.log, db.logKeys);
      const entries = await reading.entriesOf(fixture, 'realm', 0, 100);
      expect(entries.filter(({ personal }) => typeof personal === 'object')).toEqual([]);
      expect(await verify(db)).toEqual([]);
    }));

  test('a user created again after an erasure has a clean log whose earlier entries stay unreadable', () =>
    withLog(async (testLog) => {
      const { db, fixture } = testLog;
      await erase(testLog);
      await insertRecord(db, user, [fixture.realm, fixture.user], { ...userMembers, name: 'Back again' });
      expect(await verify(db)).toEqual([]);
      const reading = openLogReading(db.engine.log, db.logKeys);
      const personalValues = (await reading.entriesOf(fixture, 'realm', 0, 100)).flatMap(
        ({ personal }) => personal ?? [],
      );
      expect(personalValues.filter((personal) => personal === 'erased').length).toBeGreaterThan(2);
      expect(personalValues.at(-1)).toMatchObject({ after: { name: 'Back again' } });
    }));
});
