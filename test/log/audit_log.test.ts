import { afterAll, describe, expect, test } from 'bun:test';
import { createClient } from '../../src/access/clients/clients.ts';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import { resumeChain, sealAnchor } from '../../src/log/chain.ts';
import type { LogFinding } from '../../src/log/chain_verifier.ts';
import { type Checkpoint, checkpointLine, readLine } from '../../src/log/checkpoint.ts';
import { openLogKeys } from '../../src/log/keys.ts';
import { openLogReading, type ReadableEntry } from '../../src/log/reading.ts';
import { headsOf, verifyLogs } from '../../src/log/verify.ts';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { realm, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase, openFreshDatabase } from '../support/database.ts';
import { ofRealm } from '../support/log_rows.ts';
import { createFixture, insertRecord, realmMembers, startService } from '../support/service.ts';
import { sqlLiteral, tamperWithLog } from '../support/tampered_logs.ts';

const WRITES = 'realms:write profiles:write users:write profile-infos:write users:read';

async function findingsOf(
  db: OpenDatabase,
  checkpoints: readonly Checkpoint[] = [],
  now: () => number = systemClock.now,
): Promise<readonly LogFinding[]> {
  return (await verifyLogs({ store: db.engine.log, keys: db.logKeys, checkpoints, now })).findings;
}

/** Checkpoints of all logs as they are now, read back from a signed line. */
async function checkpointsOf({ engine, logKeys }: OpenDatabase): Promise<readonly Checkpoint[]> {
  const heads = await Array.fromAsync(headsOf(engine.log));
  const line = readLine(
    checkpointLine(heads, { at: systemClock.now(), retentionDays: 90 }, logKeys),
    logKeys,
  );
  return line.kind === 'checkpoint' && line.isSigned ? line.logs : [];
}

describe('audit entries', () => {
  test('a change is in its realm log with actor, address, before and after', async () => {
    const service = await startService();
    const { realm: id, user: userId } = await createFixture(service.db);
    const token = await service.token(WRITES, new Set([id]));
    const path = `/v2/authentication-realms/${id}/user-authentication-info/${userId}`;
    const data = { type: 'user_authentication_info', email: 'jane@elsewhere.example' };
    const answer = await service.put(path, token, { data }, { 'X-Request-Id': 'r-77' });
    expect(answer.status).toBe(200);
    const reading = openLogReading(service.db.engine.log, service.db.logKeys);
    const last = (await reading.entries(id, 0, 1_000)).at(-1);
    expect(last).toMatchObject({
      log: id,
      what: 'user-authentication-info.updated',
      address: '127.0.0.1',
      request_id: 'r-77',
      realm_id: id,
      user_id: userId,
      object: userId,
      members: ['email'],
      personal: { before: { email: 'jane@example.com' }, after: { email: 'jane@elsewhere.example' } },
    });
    expect((await service.del(path, token)).status).toBe(204);
    const deletionEntries = (await reading.entries(id, last?.seq ?? 0, 1_000)).map(
      ({ what, personal }): Partial<ReadableEntry> => ({ what, ...(personal ? { personal } : {}) }),
    );
    expect(deletionEntries.at(-1)).toEqual({
      what: 'user-authentication-info.deleted',
      personal: { before: expect.objectContaining({ name: 'Jane Doe', email: 'jane@elsewhere.example' }) },
    });
    expect(deletionEntries).toHaveLength(3);
  });

  test('a log entry contains no personal value in plain text and no secret', async () => {
    const { database, db } = await openFreshDatabase();
    const fixture = await createFixture(db);
    const rows = await database.query<Record<string, unknown>>('select * from log_entry');
    const texts = JSON.stringify(
      rows.map((row) =>
        Object.values(row).map((value) =>
          value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
        ),
      ),
    );
    for (const value of [fixture.subject, fixture.username, 'Jane Doe', 'jane@example.com', '$argon2id']) {
      expect(texts).not.toContain(value);
    }
    expect(texts).toContain('https://login.example.com/');
    await db.engine.close();
  });

  test('the creation of a client has an entry in the log of the installation, with actor and detail', async () => {
    const { db } = await openFreshDatabase();
    const grant = { scopes: new Set(['users:read']), realms: '*' } as const;
    const caller = { actor: 'someone', address: '192.0.2.7', requestId: 'r-1' };
    const { client } = await createClient(db.engine.access, 'shop', grant, { ...systemClock, caller });
    const entries = await openLogReading(db.engine.log, db.logKeys).entries(NIL_UUID, 0, 100);
    expect(entries.at(-1)).toMatchObject({
      what: 'client.created',
      actor: 'someone',
      address: '192.0.2.7',
      request_id: 'r-1',
      object: client.clientId,
      detail: { after: { name: 'shop', scope: 'users:read', realms: '*' } },
    });
    await db.engine.close();
  });
});

describe('verification', async () => {
  const { database, db } = await openFreshDatabase();
  await createFixture(db);
  await createFixture(db);
  await createClient(db.engine.access, 'a', { scopes: new Set(['users:read']), realms: '*' }, systemClock);
  const checkpoints = await checkpointsOf(db);

  afterAll(() => db.engine.close());

  test('verify finds an untouched log clean, with checkpoints and without', async () => {
    expect(await findingsOf(db)).toEqual([]);
    expect(await findingsOf(db, checkpoints)).toEqual([]);
    expect(checkpoints).toHaveLength(3);
  });

  test('verify finds each of 200 random edits, and nothing once it is undone', async () => {
    let state = 20_261_121;
    const draw = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const touched = new Set<string>();
    for (let round = 0; round < 200; round += 1) {
      const edited = await tamperWithLog(database, draw);
      touched.add(`${edited.table}.${edited.column}`);
      const findings = await findingsOf(db);
      if (findings.length === 0)
        throw new Error(`round ${round}: ${edited.table}.${edited.column} is not found`);
      await edited.undo();
    }
    expect(await findingsOf(db)).toEqual([]);
    expect(touched.size).toBeGreaterThan(30);
  }, 300_000);

  test('edited values of an entry are reported as unreadable, and hide no other entry', async () => {
    const ownDatabase = await freshDatabase();
    const damaged = await openDatabase(ownDatabase.settings(), systemClock);
    const { realm: id } = await createFixture(damaged);
    const reading = openLogReading(damaged.engine.log, damaged.logKeys);
    const before = await reading.entries(id, 0, 100);
    const edited = before.find(({ detail, personal }) => detail && personal)?.seq ?? 0;
    const bytes = sqlLiteral(ownDatabase, new Uint8Array(1));
    await ownDatabase.tamper(
      `update log_entry set detail = ${bytes}, personal = ${bytes}
         where ${ofRealm(ownDatabase.address.engine)} and seq = ${edited}`,
      id,
    );
    const after = await reading.entries(id, 0, 100);
    const unreadable = { detail: { unreadable: '00' }, personal: 'unreadable' };
    expect(after).toEqual(
      before.map((entry) => (entry.seq === edited ? { ...entry, ...unreadable } : entry)) as never,
    );
    expect(edited).toBeGreaterThan(0);
    await damaged.engine.close();
  });

  test('verify finds a removed entry', async () => {
    const ownDatabase = await freshDatabase();
    const damaged = await openDatabase(ownDatabase.settings(), systemClock);
    const { realm: id } = await createFixture(damaged);
    await ownDatabase.tamper(
      `delete from log_entry where ${ofRealm(ownDatabase.address.engine)} and seq = 3`,
      id,
    );
    expect((await findingsOf(damaged)).map(({ message }) => message)).toContainEqual(
      '1 entries before this one are missing',
    );
    await damaged.engine.close();
  });
});

describe('a log with its end cut off', () => {
  /** A database whose last log entry was deleted. */
  async function cut() {
    const { database, db } = await openFreshDatabase();
    const { realm: id } = await createFixture(db);
    const [before] = await database.query<{ seq: number; entries: number; tag: Uint8Array }>(
      'select seq, entries, tag from realm_clock where realm_id = ?',
      id,
    );
    await insertRecord(db, user, [id, systemClock.mintId()], {
      ...{ name: 'Joe', email: 'joe@example.com', given_name: null, middle_name: null, family_name: null },
      ...{ creation_status: 'COMPLETE', email_vouched: true, enabled: true },
    });
    const checkpoints = await checkpointsOf(db);
    const bytes = sqlLiteral(database, before?.tag ?? null);
    const where = ofRealm(database.address.engine);
    await database.tamper(`delete from log_entry where ${where} and seq > ${before?.seq}`, id);
    const setHead = async (assignments: string) =>
      database.tamper(`update realm_clock set ${assignments} where realm_id = ?`, id);
    return { db, checkpoints, id, before, bytes, setHead };
  }

  test('verify finds a cut-off end by the log head', async () => {
    const { db } = await cut();
    expect(await findingsOf(db)).not.toEqual([]);
    await db.engine.close();
  });

  test('verify finds an end cut off together with the log head only with a checkpoint', async () => {
    const { db, checkpoints, before, bytes, setHead } = await cut();
    await setHead(`seq = ${before?.seq}, entries = ${before?.entries}, tag = ${bytes}`);
    expect(await findingsOf(db)).toEqual([]);
    expect((await findingsOf(db, checkpoints)).map(({ message }) => message)).toEqual([
      'a checkpoint covers this entry, but it does not exist: entries were removed, or the database is older',
    ]);
    await db.engine.close();
  });
});

describe('a rewritten log', () => {
  /** Recomputes every tag after an edit, with the keys of the installation or with other ones. */
  async function rewritten(isKeyKnown: boolean) {
    const { database, db } = await openFreshDatabase();
    const { realm: id } = await createFixture(db);
    const checkpoints = await checkpointsOf(db);
    const keys = isKeyKnown ? db.logKeys : openLogKeys(new Uint8Array(32), systemClock);
    const head = await db.engine.log.head(id);
    const anchor = sealAnchor(
      keys,
      id,
      head?.chain?.anchor ?? { seq: 0, tag: new Uint8Array(32), entries: 0 },
    );
    const chain = resumeChain(keys, anchor);
    const where = ofRealm(database.address.engine);
    await database.tamper(`update log_entry set actor = 'nobody' where ${where} and seq = 2`, id);
    for (const { seq, columns } of await db.engine.log.entries(id, 0, 1_000)) {
      const tag = chain.next(seq, Object.values(columns));
      await database.tamper(
        `update log_entry set tag = ${sqlLiteral(database, tag)} where ${where} and seq = ${seq}`,
        id,
      );
    }
    await database.tamper(
      `update realm_clock set tag = ${sqlLiteral(database, chain.tag)}, anchor_mac = ${sqlLiteral(database, anchor.mac)}
         where realm_id = ?`,
      id,
    );
    return { db, checkpoints };
  }

  test('verify finds a log rewritten without the master key', async () => {
    const { db } = await rewritten(false);
    expect(await findingsOf(db)).not.toEqual([]);
    await db.engine.close();
  });

  test('verify finds a log rewritten with the master key only with a checkpoint', async () => {
    const { db, checkpoints } = await rewritten(true);
    expect(await findingsOf(db)).toEqual([]);
    expect((await findingsOf(db, checkpoints)).map(({ message }) => message)).toEqual([
      'this entry differs from a checkpoint: it, or an entry before it, was rewritten',
    ]);
    await db.engine.close();
  });
});

describe('an older database in place of a newer one', () => {
  test('verify finds an older database by checkpoints, in each log that changed', async () => {
    const { database, db } = await openFreshDatabase();
    await createFixture(db);
    await db.engine.close();
    const older = await database.copy();
    const newer = await openDatabase(database.settings(), systemClock);
    const later: Uuid = systemClock.mintId();
    await insertRecord(newer, realm, [later], realmMembers);
    const checkpoints = await checkpointsOf(newer);
    await newer.engine.close();
    const restored = await openDatabase(older.settings(), systemClock);
    expect(await findingsOf(restored)).toEqual([]);
    expect(await findingsOf(restored, checkpoints)).toEqual([
      {
        log: NIL_UUID,
        seq: expect.any(Number),
        message:
          'a checkpoint covers this entry, but it does not exist: entries were removed, or the database is older',
      },
      { log: later, seq: 1, message: 'a checkpoint covers this log, but the log does not exist' },
    ]);
    await restored.engine.close();
  });
});

describe('a trimmed log', () => {
  test('a trimmed log starts after the removed entries, verifies clean, and keeps its last entry', async () => {
    const { db } = await openFreshDatabase();
    const { realm: id } = await createFixture(db);
    const checkpoints = await checkpointsOf(db);
    const { log } = db.engine;
    const before = await log.head(id);
    const later = systemClock.now() + 1_000;
    expect(await log.trim(id, later)).toBe((before?.seq ?? 0) - 1);
    expect(await log.trim(id, later)).toBe(0);
    expect(await log.entries(id, 0, 10)).toHaveLength(1);
    await createFixture(db, { realm: id });
    expect(await findingsOf(db, checkpoints, () => later + 90 * 86_400_000)).toEqual([]);
    expect((await log.head(id))?.chain?.end.entries).toBeGreaterThan(before?.chain?.end.entries ?? 0);
    await db.engine.close();
  });

  test('a log is trimmed a thousand entries at a time', async () => {
    const { db } = await openFreshDatabase();
    const id = systemClock.mintId();
    await insertRecord(db, realm, [id], realmMembers);
    const many = LIMITS.cascadeRecordsMax + 5;
    const one = () =>
      insertRecord(db, user, [id, systemClock.mintId()], {
        ...{ name: 'Joe', email: 'joe@example.com', given_name: null, middle_name: null, family_name: null },
        ...{ creation_status: 'COMPLETE', email_vouched: true, enabled: true },
      });
    for (let done = 0; done < many; done += 201) await Promise.all(Array.from({ length: 201 }, one));
    const later = systemClock.now() + 1_000;
    expect([await db.engine.log.trim(id, later), await db.engine.log.trim(id, later)]).toEqual([
      LIMITS.cascadeRecordsMax,
      5,
    ]);
    expect(await findingsOf(db)).toEqual([]);
    await db.engine.close();
  });
});
