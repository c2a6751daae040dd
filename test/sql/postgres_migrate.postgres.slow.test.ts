import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { NIL_UUID } from '../../src/model/id.ts';
import { oidcProfileInfo, realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { reopenEngine } from '../../src/ops/store/open.ts';
import { EXPORT_START } from '../../src/ops/transfer/export.ts';
import { postgresIndexesOf } from '../../src/sql/postgres/indexes.ts';
import { TABLES } from '../../src/sql/tables/tables.ts';
import { freshFolder } from '../support/folder.ts';
import { DESCRIBED_OBJECTS, storedObjects } from '../support/postgres_schema_table.ts';
import {
  addressOf,
  futureMigration,
  knownMigrations,
  migratedDatabase,
  migrateTo,
  migrationVersions,
  openPostgres,
  rejectionMessage,
  superuserClient,
  tableNames,
} from '../support/postgres_schemas.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand, runTogether, startCommand } from '../support/processes.ts';
import { createFixture, oidcPath, startService } from '../support/service.ts';

/** The schema versions of a database of this release, and of one migrated by the next release. */
const NOW = knownMigrations.map(({ version }) => version);
const NEXT = [...NOW, futureMigration.version];

describe('the schema', () => {
  test('a migrated database has the tables as they are described, on every release of PostgreSQL', async () => {
    expect(await storedObjects(await migratedDatabase())).toEqual(DESCRIBED_OBJECTS);
  });

  test('each index that covers a whole table has the columns that its description names, in their order', async () => {
    const sql = superuserClient(await migratedDatabase());
    const stored =
      await sql.unsafe(`select t.relname as table, c.relname as name, i.indisunique as "isUnique",
        string_to_array(substring(pg_get_indexdef(c.oid) from '\\((.*)\\)'), ', ') as columns
      from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
      where pg_get_indexdef(c.oid) like '% USING btree %' and t.relnamespace = 'public'::regnamespace and i.indpred is null
      order by c.relname collate "C"`);
    const described = TABLES.flatMap(({ name }) => postgresIndexesOf(name));
    expect(described.toSorted((one, other) => (one.name < other.name ? -1 : 1))).toEqual([...stored]);
  });

  test('a new database checks each foreign key by the key that it names', async () => {
    const sql = superuserClient(await migratedDatabase());
    const checks = TABLES.flatMap(({ references = [] }) => references);
    for (const { table, target } of new Map(checks.map((each) => [each.table, each])).values()) {
      // As the server checks it: by a plan for any values, on a table without statistics.
      const parameters = target.map((column, at) => `${column} = $${at + 1}`).join(' and ');
      await sql.unsafe('set plan_cache_mode = force_generic_plan');
      await sql.unsafe(
        `prepare reference as select 1 from only ${table} x where ${parameters} for key share of x`,
      );
      const values = target.map((column) =>
        column === 'client_id' || column === 'webhook_id' ? `''` : `'${NIL_UUID}'`,
      );
      const plan = await sql.unsafe(`explain execute reference (${values.join()})`).values();
      await sql.unsafe('deallocate reference');
      expect([table, plan.flat().join()]).toEqual([table, expect.stringContaining(` ${table}_pkey `)]);
    }
  });

  test('PostgreSQL migrations are numbered without gaps', () => {
    expect(knownMigrations.map(({ version }) => version)).toEqual(
      knownMigrations.map((_, index) => index + 1),
    );
  });

  test('a schema newer than the program is refused with the release to install', async () => {
    const url = await migratedDatabase();
    await superuserClient(url).unsafe(`insert into migration values (900, 'later', 1, '9.9.9', 900)`);
    for (const mode of ['auto', 'check'] as const) {
      expect(await rejectionMessage(openPostgres(url, mode))).toMatch(
        /has schema 900.*install authrealm 9\.9\.9 or newer/,
      );
    }
  });

  test('a newer schema that was only expanded is served in every mode, until a migration contracts it', async () => {
    const url = await migratedDatabase();
    const sql = `-- serves: ${knownMigrations.length}\n${futureMigration.sql}`;
    await migrateTo(url, [...knownMigrations, { ...futureMigration, sql }]);
    const before = await tableNames(url);
    for (const mode of ['auto', 'check'] as const) {
      for (const ownerUrl of [undefined, url]) await (await openPostgres(url, mode, ownerUrl)).close();
    }
    expect([await migrationVersions(url), await tableNames(url)]).toEqual([NEXT, before]);
    const contracting = {
      version: futureMigration.version + 1,
      name: 'contracted',
      sql: 'drop table later;',
    };
    await migrateTo(url, [...knownMigrations, futureMigration, contracting], '0.3.0');
    expect(await rejectionMessage(openPostgres(url))).toContain(
      `has schema ${contracting.version}, created by authrealm 0.3.0`,
    );
  });

  test('an older schema is migrated by auto and refused by check', async () => {
    const url = await migratedDatabase();
    const renumber = (version: number) =>
      superuserClient(url).unsafe(`update migration set version = ${version}, serves_from = ${version}`);
    await renumber(0);
    expect(await rejectionMessage(openPostgres(url, 'check'))).toStartWith(
      'the database has schema 0, but this program needs 1',
    );
    expect(await migrationVersions(url)).toEqual([0]);
    await renumber(1);
    await migrateTo(url, [...knownMigrations, futureMigration]);
    expect([await migrationVersions(url), (await tableNames(url)).includes('later')]).toEqual([NEXT, true]);
  });

  test('a missing schema is created by check as well', async () => {
    const url = await (await sharedServer()).freshDatabase();
    await (await openPostgres(url, 'check')).close();
    expect(await migrationVersions(url)).toEqual(NOW);
  });

  for (const [owner, sql] of [
    ['another program', 'create table shop (id int)'],
    [
      'another program with a migration table',
      'create table migration (id int); create table instance (id int)',
    ],
    ['another program with a table of the same name', 'create table realm (id int)'],
  ] as const) {
    test(`the schema of ${owner} is refused, and nothing is created in it`, async () => {
      const url = await (await sharedServer()).freshDatabase();
      await superuserClient(url).unsafe(sql).simple();
      const before = await tableNames(url);
      expect(await rejectionMessage(openPostgres(url))).toMatch(
        /^schema public .* belongs to another program/,
      );
      expect(await tableNames(url)).toEqual(before);
    });
  }

  test('the first schema of the search path is used, whatever other schemas contain', async () => {
    const url = await (await sharedServer()).freshDatabase();
    const { pathname } = new URL(url);
    await superuserClient(url).unsafe('create table migration (id int); create schema "Our own"').simple();
    await superuserClient(url).unsafe(
      `alter database ${pathname.slice(1)} set search_path to "Our own", public`,
    );
    const engine = await openPostgres(url);
    expect(await engine.records.get(realm, [NIL_UUID])).toBeUndefined();
    await engine.close();
    expect([await tableNames(url), (await tableNames(url, 'Our own')).length]).toEqual([
      ['migration'],
      TABLES.length,
    ]);
  });

  test('a schema hidden by a new search path is not created a second time', async () => {
    const url = await migratedDatabase();
    const { pathname } = new URL(url);
    await superuserClient(url).unsafe('create schema other');
    await superuserClient(url).unsafe(`alter database ${pathname.slice(1)} set search_path to other, public`);
    expect(await rejectionMessage(openPostgres(url))).toMatch(
      /the tables of authrealm are in schema public, and role postgres/,
    );
    expect(await tableNames(url, 'other')).toEqual([]);
  });

  test('a search path without an existing schema is refused', async () => {
    const url = await (await sharedServer()).freshDatabase();
    const { pathname } = new URL(url);
    await superuserClient(url).unsafe(`alter database ${pathname.slice(1)} set search_path to nowhere`);
    expect(await rejectionMessage(openPostgres(url))).toMatch(/^role postgres has no schema for its tables/);
  });
});

describe('concurrent migrations', () => {
  test('twenty processes that start at once on an empty database create one installation', async () => {
    const url = await (await sharedServer()).freshDatabase();
    const masterKey = join(freshFolder(), 'master.key');
    await runCommand([AUTHREALM, 'keys', 'make', masterKey]);
    const database = ['--database', url, '--master-key-file', masterKey];
    const start = async () => {
      const service = startCommand([AUTHREALM, 'serve', '--port', '0', ...database]);
      await service.line(/^listening on/);
      return service.stop();
    };
    expect(await Promise.all(Array.from({ length: 20 }, start))).toEqual(Array(20).fill(0));
    const { stdout } = await runCommand([AUTHREALM, 'keys', 'list', ...database]);
    expect(stdout.match(/^kid /gm)).toHaveLength(1);
    const [counts] = await superuserClient(
      url,
    ).unsafe(`select (select count(*)::int from migration) as migrations,
      (select count(*)::int from instance) as instances, (select count(*)::int from keyring) as keys`);
    expect(counts).toEqual({ migrations: NOW.length, instances: 1, keys: 1 });
  }, 300_000);

  test('twenty processes that migrate at once apply each migration once', async () => {
    const url = await migratedDatabase();
    const script = join(import.meta.dir, 'contract/postgres_upgrade_process.ts');
    await runTogether(20, [process.execPath, script, url, futureMigration.sql], /^done$/);
    expect(await migrationVersions(url)).toEqual(NEXT);
  }, 300_000);

  test('a migration that waits for a table lock lets readers through, and continues when it gets the lock', async () => {
    const url = await migratedDatabase();
    const reader = new SQL(url, { max: 1 });
    await reader.unsafe('begin; select 1 from realm').simple();
    const migrating = migrateTo(url, [...knownMigrations, futureMigration]);
    const engine = await reopenEngine(addressOf(url));
    let slowest = 0;
    for (let round = 0; round < 12; round += 1) {
      const before = performance.now();
      await engine.records.get(realm, [NIL_UUID]);
      slowest = Math.max(slowest, performance.now() - before);
      await Bun.sleep(100);
    }
    expect(slowest).toBeLessThan(2_000);
    await reader.unsafe('commit').simple();
    await reader.close();
    await migrating;
    expect(await migrationVersions(url)).toEqual(NEXT);
    await engine.close();
  }, 300_000);
});

/** Terminates a session after its n-th change of the schema; n is in kill.plan. */
const KILL_AT_STATEMENT = `
  create schema kill;
  create table kill.plan (at int not null);
  insert into kill.plan values (0);
  create function kill.count() returns event_trigger language plpgsql as $$
  declare done int := coalesce(nullif(current_setting('kill.done', true), ''), '0')::int + 1;
  begin
    perform set_config('kill.done', done::text, true);
    if done = (select at from kill.plan) then perform pg_terminate_backend(pg_backend_pid()); end if;
  end $$;
  create event trigger kill on ddl_command_end execute function kill.count();`;

describe('a killed migration', () => {
  test('a migration killed at any statement changes nothing, and the next start applies all of it', async () => {
    const url = await (await sharedServer()).freshDatabase();
    await superuserClient(url).unsafe(KILL_AT_STATEMENT).simple();
    const killAt = (at: number) => superuserClient(url).unsafe(`update kill.plan set at = ${at}`);
    for (const [index, { sql }] of knownMigrations.entries()) {
      const before = await tableNames(url);
      let kills = 0;
      for (let at = 1; at < 200; at += 1) {
        await killAt(at);
        const message = await rejectionMessage(migrateTo(url, knownMigrations.slice(0, index + 1)));
        if (message === 'none') break;
        kills += 1;
        expect(await tableNames(url)).toEqual(before);
        if (at === 1) expect(await rejectionMessage(openPostgres(url))).toContain('cannot be opened');
      }
      // The first statement creates the migration table.
      expect(kills).toBe((sql.match(/^(create|alter|drop) /gm) ?? []).length + 1);
      expect(await migrationVersions(url)).toEqual(NOW.slice(0, index + 1));
    }
    await killAt(0);
    await (await openPostgres(url)).close();
    expect((await tableNames(url)).length).toBe(TABLES.length);
  }, 300_000);

  test('a killed migration of a schema in use leaves the former schema, which is served', async () => {
    const url = await migratedDatabase();
    await superuserClient(url).unsafe(KILL_AT_STATEMENT).simple();
    for (const at of [1, 2]) {
      await superuserClient(url).unsafe(`update kill.plan set at = ${at + 1}`);
      expect(await rejectionMessage(migrateTo(url, [...knownMigrations, futureMigration]))).not.toBe('none');
      expect([await migrationVersions(url), (await tableNames(url)).includes('later')]).toEqual([NOW, false]);
      const engine = await openPostgres(url, 'check');
      expect(await engine.access.storeId()).not.toBe('');
      await engine.close();
    }
    await superuserClient(url).unsafe('update kill.plan set at = 0');
    await migrateTo(url, [...knownMigrations, futureMigration]);
    expect(await migrationVersions(url)).toEqual(NEXT);
  });

  for (const position of ['before', 'within', 'after']) {
    test(`a migration whose process is killed ${position} its statements is applied by the next process`, async () => {
      const url = await migratedDatabase();
      const pause = 'select pg_sleep(1);';
      const [first = '', ...others] = futureMigration.sql.split(/(?<=;)/);
      const sql =
        position === 'within'
          ? [first, pause, ...others].join('')
          : position === 'before'
            ? pause + futureMigration.sql
            : futureMigration.sql + pause;
      const script = join(import.meta.dir, 'contract/postgres_upgrade_process.ts');
      const running = startCommand([process.execPath, script, url, sql]);
      await running.line(/^ready$/);
      running.process.stdin.write('go\n');
      running.process.stdin.flush();
      const isPausing = `select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`;
      while ((await superuserClient(url).unsafe(isPausing)).length === 0) await Bun.sleep(10);
      running.process.kill('SIGKILL');
      await running.process.exited;
      expect(await migrationVersions(url)).toEqual(NOW);
      // PostgreSQL notices the kill only after the current statement; the next process waits for that.
      await migrateTo(url, [...knownMigrations, futureMigration]);
      expect([await migrationVersions(url), (await tableNames(url)).includes('later')]).toEqual([NEXT, true]);
    }, 300_000);
  }
});

test('a running service of this release continues to serve during an expanding migration', async () => {
  const url = await migratedDatabase();
  const masterKey = join(freshFolder(), 'master.key');
  writeFileSync(masterKey, Buffer.from(systemClock.randomBytes(32)).toString('hex'), { mode: 0o600 });
  const { use, close } = await serviceOn(url, masterKey);
  await use();
  const columns = (await tableNames(url)).map((name) => `alter table ${name} add column next_release text;`);
  await migrateTo(url, [
    ...knownMigrations,
    { ...futureMigration, sql: `${columns.join('')} create table later (id text);` },
  ]);
  await use();
  await close();
});

/** A service, and `use`, which runs every kind of statement on connections that have prepared them. */
async function serviceOn(url: string, masterKeyFile: string) {
  const service = await startService({ database: url, masterKeyFile });
  return {
    async use() {
      const token = await service.token('realms:write realms:read users:write users:read profile-infos:read');
      const created = await createFixture(service.db);
      for (let round = 0; round < 8; round += 1) {
        const answers = await Promise.all(
          Array.from({ length: 4 }, () => service.get(oidcPath(created), token)),
        );
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      }
      const key = { 'Idempotency-Key': crypto.randomUUID() };
      const body = { data: { type: 'authentication-realm', name: 'again' } };
      const answers = [0, 1].map(() => service.post('/v2/authentication-realms', token, body, key));
      const [made, again] = await Promise.all(answers);
      expect([made?.status, [201, 409].includes(again?.status ?? 0)]).toEqual([201, true]);
      const users = `/v2/authentication-realms/${created.realm}/user-authentication-info`;
      expect((await service.get(`${users}?sort=-updated_at`, token)).status).toBe(200);
      expect((await service.del(`${users}/${created.user}`, token)).status).toBe(204);
      const { records } = service.db.engine;
      expect((await records.changes(created.realm, 0, 100)).length).toBeGreaterThan(5);
      const snapshot = await records.openSnapshot();
      expect(await snapshot.scan(oidcProfileInfo, EXPORT_START, 1, created.realm)).toEqual([]);
      await snapshot.close();
    },
    close: () => service.stop(),
  };
}
