import { expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SQL } from 'bun';
import {
  allRows,
  createCopyFixture,
  freshDatabaseOf,
  newMasterKey,
  startCopyService,
} from '../support/copy_fixtures.ts';
import { findPort, freshDaemonFolder, HOST, runAsDaemon, startDaemon } from '../support/daemons.ts';
import { postgresAt, type TestDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import { sharedServer, startServer } from '../support/postgres_server.ts';
import { runCommand } from '../support/processes.ts';
import { createFixture, freshFolder } from '../support/service.ts';

/** Backup and restore of PostgreSQL with the programs of Debian. */

setDefaultTimeout(300_000);

const SCRIPTS = fileURLToPath(new URL('../../deploy/postgres/', import.meta.url));
const BINARIES = process.env.AUTHREALM_TEST_POSTGRES_BIN ?? '/usr/lib/postgresql/15/bin';

function script(name: string, url: string, ...words: readonly string[]) {
  const { hostname, port, pathname } = new URL(url);
  return runCommand([join(SCRIPTS, name), ...words], {
    PATH: `${BINARIES}:${process.env.PATH}`,
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: 'postgres',
    PGDATABASE: pathname.slice(1),
  });
}

const freshUrl = async (): Promise<string> => (await sharedServer()).freshDatabase();

/** The database at this URL, with the master key of its source. */
const restoredAt = (url: string, { masterKeyFile }: TestDatabase) =>
  postgresAt(url, masterKeyFile, { database: url });

test('a dump taken while the service writes restores one moment', async () => {
  const source = await freshDatabaseOf('postgres', newMasterKey());
  const service = await startCopyService(source);
  await createCopyFixture(service);
  const before = await createFixture(service.db);
  let isWriting = true;
  const writing = (async () => {
    let count = 0;
    for (; isWriting; count += 1) await createFixture(service.db);
    return count;
  })();
  const folder = freshFolder();
  const backup = await script('backup.sh', source.url, folder);
  isWriting = false;
  expect(await writing).toBeGreaterThan(0);
  expect([backup.stderr, backup.code]).toEqual(['', 0]);
  const after = await createFixture(service.db);
  await service.stop();
  const dump = backup.stdout.trim();
  expect(
    readdirSync(folder)
      .map((name) => join(folder, name))
      .sort(),
  ).toEqual([dump, `${dump}.sha256`]);

  const url = await freshUrl();
  const restored = restoredAt(url, source);
  const restore = await script('restore.sh', url, dump);
  expect([restore.stderr, restore.code]).toEqual(['', 0]);
  expect(await restored.findInconsistencies()).toEqual([]);
  const ids = (await restored.query<{ id: string }>('select id::text as id from user_info')).map(
    ({ id }) => id,
  );
  expect([ids.includes(before.user), ids.includes(after.user)]).toEqual([true, false]);
  expect((await runDoctorOn(restored)).unhealthy).toEqual((await runDoctorOn(source)).unhealthy);
  // The database is not empty any more: a second restore is refused.
  await (await startCopyService(restored)).stop();
  const second = await script('restore.sh', url, dump);
  expect([second.code, second.stderr]).toEqual([
    1,
    expect.stringMatching(/set PGDATABASE to an empty database/),
  ]);
});

test('an unchanged database equals its restored dump, and a truncated dump restores nothing', async () => {
  const source = await freshDatabaseOf('postgres', newMasterKey());
  const service = await startCopyService(source);
  await createCopyFixture(service);
  await service.stop();
  const dump = (await script('backup.sh', source.url, freshFolder())).stdout.trim();
  const url = await freshUrl();
  expect((await script('restore.sh', url, dump)).code).toBe(0);
  expect(await allRows(restoredAt(url, source))).toEqual(await allRows(source));

  const bytes = readFileSync(dump);
  const empty = await freshUrl();
  for (const part of [0, 0.3, 0.7, 0.999]) {
    writeFileSync(dump, bytes.subarray(0, Math.floor(bytes.length * part)));
    expect((await script('restore.sh', empty, dump)).code).not.toBe(0);
  }
  const tables = await restoredAt(empty, source).query(`select 1 from pg_tables where schemaname = 'public'`);
  expect(tables).toEqual([]);
});

test('backup.sh removes older dumps of the database after the new dump succeeds, and no other file', async () => {
  const source = await freshDatabaseOf('postgres', newMasterKey());
  await (await startCopyService(source)).stop();
  const name = new URL(source.url).pathname.slice(1);
  const folder = freshFolder();
  const files = [`${name}-20200101T000000Z.dump`, 'other-20200101T000000Z.dump', `${name}-notes.dump`];
  for (const file of files) {
    writeFileSync(join(folder, file), '');
    utimesSync(join(folder, file), 1_577_836_800, 1_577_836_800);
  }
  expect((await script('backup.sh', 'postgres://127.0.0.1:1/none', folder, '7')).code).not.toBe(0);
  expect(readdirSync(folder).sort()).toEqual([...files].sort());
  expect((await script('backup.sh', source.url, folder, '7')).code).toBe(0);
  expect(files.map((file) => existsSync(join(folder, file)))).toEqual([false, true, true]);
  expect((await script('backup.sh', source.url, folder, 'week')).code).toBe(2);
});

test('a base backup with archived logs recovers to a point in time', async () => {
  const folder = freshDaemonFolder();
  const [archive, base] = [join(folder, 'archive'), join(folder, 'base')];
  await runAsDaemon(['mkdir', archive], folder);
  const authentication = join(folder, 'hba.conf');
  writeFileSync(authentication, `host all,replication all ${HOST}/32 trust\n`, { mode: 0o644 });
  const server = await startServer({
    hba_file: authentication,
    archive_mode: 'on',
    archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`,
  });
  const url = await server.freshDatabase();
  const key = (await freshDatabaseOf('sqlite', newMasterKey())).masterKeyFile;
  const source = postgresAt(url, key, { database: url });
  const service = await startCopyService(source);
  const connection = ['-h', HOST, '-p', String(server.port), '-U', 'postgres'];
  await runAsDaemon([join(BINARIES, 'pg_basebackup'), ...connection, '-D', base, '-X', 'none'], folder);
  const early = await createFixture(service.db);
  const [target] = await source.query<{ at: string }>('select clock_timestamp()::text as at');
  await Bun.sleep(1_100);
  const late = await createFixture(service.db);
  await source.query('select pg_switch_wal()');
  await service.stop();
  await server.stop();

  await runAsDaemon(['touch', join(base, 'recovery.signal')], folder);
  const port = findPort();
  const settings = {
    listen_addresses: HOST,
    unix_socket_directories: '',
    hba_file: authentication,
    restore_command: `cp ${archive}/%f %p`,
    recovery_target_time: target?.at ?? '',
    recovery_target_action: 'promote',
  };
  const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const daemon = startDaemon([join(BINARIES, 'postgres'), '-D', base, '-p', String(port), ...words], folder);
  const recoveredUrl = `postgres://postgres@${HOST}:${port}${new URL(url).pathname}`;
  await daemon.until(() => isPrimary(recoveredUrl));
  const restored = restoredAt(recoveredUrl, source);
  const found = (await restored.query<{ id: string }>('select id::text as id from user_info')).map(
    ({ id }) => id,
  );
  expect([found.includes(early.user), found.includes(late.user)]).toEqual([true, false]);
  expect(await restored.findInconsistencies()).toEqual([]);
  await daemon.end('SIGINT');
});

async function isPrimary(url: string): Promise<boolean> {
  const sql = new SQL(url, { max: 1 });
  try {
    const [row] = await sql.unsafe('select pg_is_in_recovery() as standby');
    return row.standby === false;
  } catch {
    return false;
  } finally {
    await sql.close();
  }
}
