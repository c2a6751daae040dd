import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { SQL } from 'bun';
import { createNewKeyFile } from '../../src/access/keys/master_key.ts';
import { readSettings } from '../../src/app/config/parse.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { BEGIN_INSPECTION } from '../../src/ops/store/postgres/inspection.ts';
import { type PostgresAddress, parsePostgres } from '../../src/sql/postgres/address.ts';
import { openConnectionPool } from '../../src/sql/postgres/pool.ts';
import { openPrimary } from '../../src/sql/postgres/primary.ts';
import { type DoctorRun, runDoctor } from '../support/doctor_report.ts';
import { freshFolder } from '../support/folder.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer, startServer } from '../support/postgres_server.ts';

const serverFindings = (found: DoctorRun) => found.report('server').findings.map(({ says }) => says);
const BEHIND_POOLER = 'a pooler shares connections between transactions';

/** Creates the schema in the database at this URL. */
async function withSchema(url: string): Promise<string> {
  const masterKeyFile = join(freshFolder(), 'master.key');
  createNewKeyFile(masterKeyFile, systemClock);
  const settings = readSettings({ database: url, masterKeyFile }, {});
  await (await openDatabase(settings, systemClock)).engine.close();
  return url;
}

describe('queries of doctor', () => {
  test('a query that exceeds its timeout fails, and so does the next one', async () => {
    const address = parsePostgres(await (await sharedServer()).freshDatabase()) as PostgresAddress;
    const primary = await openPrimary(address);
    primary.close();
    const pool = openConnectionPool({ ...address, isPrepared: false }, 1, primary, 300);
    expect((await pool.query('select 1 as one', [])).count).toBe(1);
    await expect(pool.query('select pg_sleep(60)', [])).rejects.toThrow('DATABASE_TIMEOUT');
    await expect(pool.query('select 1', [])).rejects.toMatchObject({ code: 'unavailable' });
    await pool.close();
  });

  test('a query runs in a read-only snapshot with a statement timeout, and reports its cancellation', async () => {
    const url = await withSchema(await (await sharedServer()).freshDatabase());
    const [holder, watcher] = [new SQL(url, { max: 1 }), new SQL(url, { max: 1 })];
    await holder.unsafe('begin; lock table act').simple();
    const report = runDoctor(['--database', url]);
    const cancelling = setInterval(
      () =>
        watcher
          .unsafe(`select pg_cancel_backend(pid) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`)
          .execute(),
      50,
    );
    expect((await report).report('proxies').unchecked).toContain('57014');
    clearInterval(cancelling);
    await Promise.all([holder.close(), watcher.close()]);
    expect(BEGIN_INSPECTION).toEqual([
      'begin isolation level repeatable read, read only',
      `select set_config('statement_timeout', '${LIMITS.doctorQueryMsMax}', true)`,
    ]);
  });
});

describe('settings of the server', () => {
  test('doctor reports each setting with which the server may lose acknowledged writes', async () => {
    const unsafe = await startServer({ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' });
    const found = await runDoctor(['--database', await withSchema(await unsafe.freshDatabase())]);
    await unsafe.stop();
    expect(serverFindings(found)).toEqual([
      expect.stringMatching(/^fsync is off/),
      expect.stringMatching(/^synchronous_commit is off/),
      expect.stringMatching(/^full_page_writes is off/),
    ]);
  });

  test('doctor reports a role with synchronous_commit off, and nothing with default settings', async () => {
    const server = await startServer();
    const url = await withSchema(await server.freshDatabase());
    const before = await runDoctor(['--database', url]);
    expect([serverFindings(before), before.report('server').facts]).toEqual([
      [],
      expect.arrayContaining(['fsync = on', 'synchronous_commit = on', 'full_page_writes = on']),
    ]);
    const sql = new SQL(url, { max: 1 });
    await sql.unsafe('alter role postgres set synchronous_commit = off').finally(() => sql.close());
    expect(serverFindings(await runDoctor(['--database', url]))).toEqual([
      expect.stringMatching(/^synchronous_commit is off/),
    ]);
    await server.stop('immediate');
  });

  test('doctor reports a pooler that mixes prepared statements, unless prepare=off', async () => {
    const server = await sharedServer();
    const database = new URL(await withSchema(await server.freshDatabase())).pathname.slice(1);
    const pooler = await startPgBouncer(server);
    const prepared = await runDoctor(['--database', pooler.url(database)]);
    expect(prepared.report('server').facts).toContain(BEHIND_POOLER);
    expect(serverFindings(prepared).at(-1)).toMatch(
      /^the pooler does not separate the prepared statements.*prepare=off/,
    );
    const unprepared = await runDoctor(['--database', `${pooler.url(database)}?prepare=off`]);
    expect(unprepared.report('server').facts).toContain(BEHIND_POOLER);
    expect(serverFindings(unprepared).join()).not.toContain('pooler');
    expect(unprepared.report('integrity').unchecked).toBeUndefined();
  });

  test('an unreachable server or a missing schema is one failed check', async () => {
    const unreachable = await runDoctor(['--database', 'postgres://postgres@127.0.0.1:1/d']);
    expect([unreachable.code, unreachable.report('settings').unchecked]).toEqual([1, undefined]);
    expect(unreachable.unhealthy).toEqual(['program']);
    expect(unreachable.report('program').unchecked).toMatch(
      /^the database d on 127\.0\.0\.1:1 cannot be opened/,
    );
    const empty = await runDoctor(['--database', await (await sharedServer()).freshDatabase()]);
    expect(empty.report('program').unchecked).toBe(
      'this database has no authrealm schema: create it with authrealm init',
    );
  });
});
