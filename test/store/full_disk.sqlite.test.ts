import { Database } from 'bun:sqlite';
import { afterAll, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Loader, Store } from '../../src/directory/store.ts';
import { Fault } from '../../src/domain/fault.ts';
import { realm } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openAuditLog } from '../../src/store/audit/log.ts';
import { connectSqlite } from '../../src/store/sqlite/connection.ts';
import { trackDatabaseFiles } from '../../src/store/sqlite/database_files.ts';
import { SQLITE } from '../../src/store/sqlite/dialect.ts';
import { openSqliteRecords } from '../../src/store/sqlite/records.ts';
import { openSharedReadTransaction } from '../../src/store/sqlite/shared_read_transaction.ts';
import { openSqliteTransactions } from '../../src/store/sqlite/transactions.ts';
import { openSqliteWriter } from '../../src/store/sqlite/writer.ts';
import { sqliteAt } from '../support/database.ts';
import { AUTHREALM, clientCreate, runCommand } from '../support/processes.ts';
import {
  databaseFile,
  freshFolder,
  oidcPath,
  plant,
  put,
  realmMembers,
  type Service,
  startService,
} from '../support/service.ts';

const mounted: string[] = [];

afterAll(async () => {
  for (const folder of mounted) await runCommand(['umount', '--lazy', folder]);
});

/** A folder with 4 MB of room in all, where this system lets us have one. */
async function smallFolder(): Promise<string | undefined> {
  const folder = freshFolder();
  const mount = ['mount', '-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'authrealm-test', folder];
  const isMounted = await runCommand(mount).then(
    ({ code }) => code === 0,
    () => false,
  );
  if (isMounted) mounted.push(folder);
  return isMounted ? folder : undefined;
}

/** A place to write to that can be filled up, and emptied again. */
interface Bounded {
  readonly records: Store & Loader;
  fill(): void;
  free(): void;
}

function boundedByDisk({ db }: Service, folder: string): Bounded {
  const ballast = join(folder, 'ballast');
  return {
    records: db.engine.records,
    fill() {
      for (let bytes = 4_194_304; bytes >= 4_096; bytes /= 2) {
        try {
          writeFileSync(ballast, Buffer.alloc(bytes), { flag: 'a' });
        } catch {
          // No room for so much: half of it may fit.
        }
      }
    },
    free: () => rmSync(ballast),
  };
}

/** Where nothing can be mounted: another connection to the same file, which is told how large it may become. */
function boundedByEngine({ settings }: Service): Bounded {
  const db = connectSqlite(databaseFile({ settings }));
  const snapshot = openSharedReadTransaction(db);
  const writer = openSqliteWriter(db, snapshot, trackDatabaseFiles(db.filename), openAuditLog(SQLITE));
  const pages = db.query<{ page_count: number }, []>('pragma page_count').get()?.page_count ?? 0;
  return {
    records: openSqliteRecords(db, snapshot, openSqliteTransactions(db, snapshot, writer)),
    fill: () => db.run(`pragma max_page_count = ${pages}`),
    free: () => db.run(`pragma max_page_count = ${pages * 1_000}`),
  };
}

/** Writes realms until one is refused, at most 10 MB; answers how many there are and why there are no more. */
async function writeUntilRefused(records: Bounded['records']): Promise<{ count: number; error: unknown }> {
  const db = { engine: { records } } as Service['db'];
  for (let count = 0; count < 5_000; count += 1) {
    const error = await put(db, realm, [systemClock.mintId()], {
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

function counted({ settings }: Service): { realms: number; changes: number; check: string } {
  const db = new Database(databaseFile({ settings }), { readonly: true });
  const counts = db
    .query<{ realms: number; changes: number }, []>(
      'select (select count(*) from realm) as realms, (select count(*) from change) as changes',
    )
    .get();
  const check =
    db.query<{ integrity_check: string }, []>('pragma integrity_check').get()?.integrity_check ?? '';
  db.close();
  return { realms: counts?.realms ?? 0, changes: counts?.changes ?? 0, check };
}

async function judge(service: Service, bounded: Bounded): Promise<void> {
  const planted = await plant(service.db);
  const token = await service.token('oidc-profile-infos:read');
  const before = counted(service);
  bounded.fill();
  const { count, error } = await writeUntilRefused(bounded.records);
  expect(error).toBeInstanceOf(Fault);
  expect(error).toMatchObject({ code: 'unavailable', cause: { code: 'SQLITE_FULL' } });
  // Whole or not at all, and what was read before is read on.
  expect(counted(service)).toEqual({
    realms: before.realms + count,
    changes: before.changes + count,
    check: 'ok',
  });
  expect((await service.get(oidcPath(planted), token)).status).toBe(200);
  const again = await writeUntilRefused(bounded.records);
  expect(again.error).toMatchObject({ code: 'unavailable' });
  expect((await service.get(oidcPath(planted), token)).status).toBe(200);
}

async function judgeFreed(service: Service, bounded: Bounded): Promise<void> {
  const before = counted(service);
  bounded.free();
  const db = { engine: { records: bounded.records } } as Service['db'];
  await put(db, realm, [systemClock.mintId()], realmMembers);
  expect(counted(service)).toEqual({ realms: before.realms + 1, changes: before.changes + 1, check: 'ok' });
}

test('a full disk refuses writes whole and serves lookups; with room again writes go on', async () => {
  const folder = await smallFolder();
  if (folder === undefined) return;
  const service = await startService({ database: `sqlite:${join(folder, 'full.db')}` });
  const bounded = boundedByDisk(service, folder);
  const credentials = await service.client('oidc-profile-infos:read');
  await judge(service, bounded);
  // Lookups need tokens: they are given, and their entries follow.
  const form = { grant_type: 'client_credentials', client_id: credentials.clientId };
  const granted = await service.grant({ ...form, client_secret: credentials.secret });
  expect([granted.status, await grantsOf(service, credentials.clientId)]).toEqual([200, 0]);
  const client = await clientCreate(sqliteAt(join(folder, 'full.db')), 'admin');
  expect([client.code, client.stderr]).toEqual([
    1,
    expect.stringMatching(/^authrealm: .*full.*make room.*\n$/),
  ]);
  const other = ['--database', `sqlite:${join(folder, 'other.db')}`];
  const fresh = await runCommand([AUTHREALM, 'serve', '--port', '0', ...other]);
  expect([fresh.code, fresh.stderr]).toEqual([1, expect.stringMatching(/^authrealm: .*make room.*\n$/)]);
  await judgeFreed(service, bounded);
  await service.stop();
  expect(await grantsOf(service, credentials.clientId)).toBe(1);
}, 300_000);

async function grantsOf({ database }: Service, clientId: string): Promise<number> {
  const rows = await database.ask(
    `select 1 from act where action = 'token.granted' and object = ?`,
    clientId,
  );
  return rows.length;
}

test('a file that may not grow does the same', async () => {
  const service = await startService();
  const bounded = boundedByEngine(service);
  await judge(service, bounded);
  await judgeFreed(service, bounded);
  await service.stop();
}, 300_000);
