import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { openAuditLog } from '../../src/log/store/log.ts';
import { Fault } from '../../src/model/fault.ts';
import { realm } from '../../src/model/resources.ts';
import type { Loader, Store } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';
import { openSqliteRecords } from '../../src/records/store/sqlite/records.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { trackDatabaseFiles } from '../../src/sql/sqlite/database_files.ts';
import { openSharedReadTransaction } from '../../src/sql/sqlite/shared_read_transaction.ts';
import { openSqliteReading } from '../../src/sql/sqlite/transactions.ts';
import { openSqliteWriter } from '../../src/sql/sqlite/writer.ts';
import { fillDisk, freeDisk } from '../support/ballast.ts';
import { sqliteAt } from '../support/database.ts';
import { AUTHREALM, runClientCreate, runCommand } from '../support/processes.ts';
import {
  createFixture,
  databaseFile,
  insertRecord,
  oidcPath,
  realmMembers,
  type Service,
  startService,
} from '../support/service.ts';
import { smallFolder } from '../support/small_disk.ts';

/** A store whose disk can be filled and freed. */
interface LimitedStore {
  readonly records: Store & Loader;
  fill(): void;
  free(): void;
}

function limitByDisk({ db }: Service, folder: string): LimitedStore {
  return { records: db.engine.records, fill: () => fillDisk(folder), free: () => freeDisk(folder) };
}

/** Without a mount: another connection to the same file, with a maximum number of pages. */
function limitByEngine({ settings }: Service): LimitedStore {
  const db = connectSqlite(databaseFile({ settings }));
  const sharedReads = openSharedReadTransaction(db);
  const log = openAuditLog(SQLITE);
  const writer = openSqliteWriter(db, sharedReads, trackDatabaseFiles(db.filename), log);
  const pages = db.query<{ page_count: number }, []>('pragma page_count').get()?.page_count ?? 0;
  const transactions = { ...openSqliteReading(db, sharedReads), ...writer, yieldToWriters: async () => {} };
  return {
    records: openSqliteRecords(db, sharedReads, transactions, log.rowMacs),
    fill: () => db.run(`pragma max_page_count = ${pages}`),
    free: () => db.run(`pragma max_page_count = ${pages * 1_000}`),
  };
}

/** Writes at most 10 MB of realms; returns the number written, and the error of the first refused write. */
async function writeUntilRefused(
  records: LimitedStore['records'],
): Promise<{ count: number; error: unknown }> {
  const db = { engine: { records } } as Service['db'];
  for (let count = 0; count < 5_000; count += 1) {
    const error = await insertRecord(db, realm, [systemClock.mintId()], {
      ...realmMembers,
      name: 'x'.repeat(2_000),
    }).then(
      () => undefined,
      (refused: unknown) => refused,
    );
    if (error !== undefined) return { count, error };
  }
  return { count: 5_000, error: undefined };
}

function countRows({ settings }: Service): { realms: number; changes: number; check: string } {
  const db = new Database(databaseFile({ settings }), { readonly: true });
  const counts = db
    .query<{ realms: number; changes: number }, []>(
      'select (select count(*) from realm) as realms, (select count(*) from log_entry) as changes',
    )
    .get();
  const check =
    db.query<{ integrity_check: string }, []>('pragma integrity_check').get()?.integrity_check ?? '';
  db.close();
  return { realms: counts?.realms ?? 0, changes: counts?.changes ?? 0, check };
}

async function expectWritesRefused(service: Service, limited: LimitedStore): Promise<void> {
  const created = await createFixture(service.db);
  const token = await service.token('oidc-profile-infos:read');
  const before = countRows(service);
  limited.fill();
  const { count, error } = await writeUntilRefused(limited.records);
  expect(error).toBeInstanceOf(Fault);
  expect(error).toMatchObject({ code: 'unavailable', cause: { code: 'SQLITE_FULL' } });
  // Each write was complete or absent, and reads still work.
  expect(countRows(service)).toEqual({
    realms: before.realms + count,
    changes: before.changes + count,
    check: 'ok',
  });
  expect((await service.get(oidcPath(created), token)).status).toBe(200);
  const again = await writeUntilRefused(limited.records);
  expect(again.error).toMatchObject({ code: 'unavailable' });
  expect((await service.get(oidcPath(created), token)).status).toBe(200);
}

async function expectWritesResumed(service: Service, limited: LimitedStore): Promise<void> {
  const before = countRows(service);
  limited.free();
  const db = { engine: { records: limited.records } } as Service['db'];
  await insertRecord(db, realm, [systemClock.mintId()], realmMembers);
  expect(countRows(service)).toEqual({ realms: before.realms + 1, changes: before.changes + 1, check: 'ok' });
}

test('on a full disk, each write is refused completely and lookups are served; with free space, writes succeed', async () => {
  const folder = await smallFolder(4);
  if (folder === undefined) return;
  const service = await startService({ database: `sqlite:${join(folder, 'full.db')}` });
  const limited = limitByDisk(service, folder);
  const credentials = await service.client('oidc-profile-infos:read');
  await expectWritesRefused(service, limited);
  // Lookups need tokens: these are issued, and their audit entries are written later.
  const form = { grant_type: 'client_credentials', client_id: credentials.clientId };
  const granted = await service.requestToken({ ...form, client_secret: credentials.secret });
  expect([granted.status, await grantsOf(service, credentials.clientId)]).toEqual([200, 0]);
  const client = await runClientCreate(sqliteAt(join(folder, 'full.db')), 'admin');
  expect([client.code, client.stderr]).toEqual([
    1,
    expect.stringMatching(/^authrealm: .*full.*free space.*\n$/),
  ]);
  const other = ['--database', `sqlite:${join(folder, 'other.db')}`];
  const fresh = await runCommand([AUTHREALM, 'serve', '--port', '0', ...other]);
  expect([fresh.code, fresh.stderr]).toEqual([1, expect.stringMatching(/^authrealm: .*free space.*\n$/)]);
  await expectWritesResumed(service, limited);
  await service.stop();
  expect(await grantsOf(service, credentials.clientId)).toBe(1);
}, 300_000);

async function grantsOf({ database }: Service, clientId: string): Promise<number> {
  const rows = await database.query(
    `select 1 from act where action = 'token.granted' and object = ?`,
    clientId,
  );
  return rows.length;
}

test('at its maximum size, a database file refuses each write completely and serves lookups', async () => {
  const service = await startService();
  const limited = limitByEngine(service);
  await expectWritesRefused(service, limited);
  await expectWritesResumed(service, limited);
}, 300_000);
