import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { SQL } from 'bun';
import { createNewKeyFile } from '../../src/auth/keys/master_key.ts';
import { readSettings } from '../../src/config/parse.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { BEGIN_INSPECTION } from '../../src/store/postgres/inspection.ts';
import { openRowStream } from '../../src/store/postgres/row_stream.ts';
import { type DoctorRun, runDoctor } from '../support/doctor_report.ts';
import { freshFolder } from '../support/folder.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer, startServer } from '../support/postgres_server.ts';

const ofServer = (found: DoctorRun) => found.report('server').findings.map(({ says }) => says);
const BEHIND_POOLER = 'a pooler shares connections between transactions';

/** A database with a schema on a server; `doctor` needs its name alone. */
async function made(url: string): Promise<string> {
  const masterKeyFile = join(freshFolder(), 'master.key');
  createNewKeyFile(masterKeyFile, systemClock);
  const settings = readSettings({ database: url, masterKeyFile }, {});
  await (await openDatabase(settings, systemClock)).engine.close();
  return url;
}

describe('a question', () => {
  test('that the engine does not answer in time is given up, and so is what comes behind it', async () => {
    const sql = new SQL(await (await sharedServer()).freshDatabase(), { max: 1 });
    const stream = openRowStream(sql, 300);
    const ask = (text: string) => Array.fromAsync(stream.rows('begin', text, []));
    expect(await ask('select 1 as one')).toEqual([{ one: 1 }]);
    await expect(ask('select pg_sleep(60)')).rejects.toThrow('DATABASE_TIMEOUT');
    await expect(ask('select 1')).rejects.toThrow('ERR_POSTGRES');
    await stream.close();
  });

  test('sees one moment, writes nothing, and is ended by the engine before that', async () => {
    const url = await made(await (await sharedServer()).freshDatabase());
    const [holder, watcher] = [new SQL(url, { max: 1 }), new SQL(url, { max: 1 })];
    await holder.unsafe('begin; lock table purge').simple();
    const going = runDoctor(['--database', url]);
    const cancelling = setInterval(
      () =>
        watcher
          .unsafe(`select pg_cancel_backend(pid) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`)
          .execute(),
      50,
    );
    expect((await going).report('purges').unchecked).toContain('57014');
    clearInterval(cancelling);
    await Promise.all([holder.close(), watcher.close()]);
    expect(BEGIN_INSPECTION).toBe(
      `begin isolation level repeatable read, read only; set local statement_timeout = ${LIMITS.doctorQueryMsMax}`,
    );
  });
});

describe('a server', () => {
  test('that may lose what it acknowledged is told, setting by setting', async () => {
    const hasty = await startServer({ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' });
    const found = await runDoctor(['--database', await made(await hasty.freshDatabase())]);
    await hasty.stop();
    expect(ofServer(found)).toEqual([
      expect.stringMatching(/^fsync is off/),
      expect.stringMatching(/^synchronous_commit is off/),
      expect.stringMatching(/^full_page_writes is off/),
    ]);
  });

  test('whose role commits without waiting is told, and one as it comes is not', async () => {
    const server = await startServer();
    const url = await made(await server.freshDatabase());
    const before = await runDoctor(['--database', url]);
    expect([ofServer(before), before.report('server').facts]).toEqual([
      [],
      expect.arrayContaining(['fsync = on', 'synchronous_commit = on', 'full_page_writes = on']),
    ]);
    const sql = new SQL(url, { max: 1 });
    await sql.unsafe('alter role postgres set synchronous_commit = off').finally(() => sql.close());
    expect(ofServer(await runDoctor(['--database', url]))).toEqual([
      expect.stringMatching(/^synchronous_commit is off/),
    ]);
    await server.stop('immediate');
  });

  test('behind a pooler that mixes prepared statements up, unless there are none', async () => {
    const server = await sharedServer();
    const database = new URL(await made(await server.freshDatabase())).pathname.slice(1);
    const pooler = await startPgBouncer(server);
    const prepared = await runDoctor(['--database', pooler.url(database)]);
    expect(prepared.report('server').facts).toContain(BEHIND_POOLER);
    expect(ofServer(prepared).at(-1)).toMatch(
      /^the pooler does not separate the prepared statements.*prepare=off/,
    );
    const unprepared = await runDoctor(['--database', `${pooler.url(database)}?prepare=off`]);
    expect(unprepared.report('server').facts).toContain(BEHIND_POOLER);
    expect(ofServer(unprepared).join()).not.toContain('pooler');
    expect(unprepared.report('changes').unchecked).toBeUndefined();
    await pooler.stop();
  });

  test('that is not there, or has no schema, hinders each check that asks it, and no other', async () => {
    const away = await runDoctor(['--database', 'postgres://postgres@127.0.0.1:1/d']);
    expect([away.code, away.report('settings').unchecked]).toEqual([1, undefined]);
    expect(away.report('changes').unchecked).toMatch(/^the database d on 127\.0\.0\.1:1 cannot be opened/);
    const empty = await runDoctor(['--database', await (await sharedServer()).freshDatabase()]);
    expect(empty.report('changes').unchecked).toBe(
      'this database has no authrealm schema: create it with authrealm init',
    );
  });
});
