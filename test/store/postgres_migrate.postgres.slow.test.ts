import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { NIL_UUID } from '../../src/domain/id.ts';
import { oidcProfileInfo, realm } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { INSTANCE_TABLES, REALM_TABLES } from '../../src/store/postgres/tables.ts';
import { freshFolder } from '../support/folder.ts';
import { SCHEMA_TABLE, schemaTable } from '../support/postgres_schema_table.ts';
import {
  behind,
  known,
  migrated,
  migrateTo,
  next,
  open,
  refusal,
  tables,
  versions,
} from '../support/postgres_schemas.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand, start } from '../support/processes.ts';
import { oidcPath, plant, startService } from '../support/service.ts';

/** The schemas of a database that this release has made, and of one that the next release has brought up. */
const NOW = known.map(({ version }) => version);
const NEXT = [...NOW, next.version];
const TABLES = [...INSTANCE_TABLES, ...REALM_TABLES];

describe('the schema', () => {
  test('of a fresh database is the one in schema.tsv, on every release of PostgreSQL', async () => {
    // Where it is not: npx bun scripts/write_schema.ts
    expect(await schemaTable(await migrated())).toBe(readFileSync(SCHEMA_TABLE, 'utf8'));
  });

  test('is numbered without gaps, in the numbers of the other engine', () => {
    expect(known.map(({ version }) => version)).toEqual(known.map((_, index) => index + 1));
  });

  test('that is newer than the program is refused, and names the release to install', async () => {
    const url = await migrated();
    await behind(url).unsafe(`insert into migration values (900, 'later', 1, '9.9.9')`);
    for (const mode of ['auto', 'check', 'off'] as const) {
      expect(await refusal(open(url, mode))).toMatch(/has schema 900.*install authrealm 9\.9\.9 or newer/);
    }
  });

  test('that is newer and only expanded is served in every mode; what contracts it later ends that', async () => {
    const url = await migrated();
    const sql = `-- serves: ${known.length}\n${next.sql}`;
    await migrateTo(url, [...known, { ...next, sql }]);
    const before = await tables(url);
    for (const mode of ['auto', 'check', 'off'] as const) {
      for (const ownerUrl of [undefined, url]) await (await open(url, mode, ownerUrl)).close();
    }
    expect([await versions(url), await tables(url)]).toEqual([NEXT, before]);
    const contracting = { version: next.version + 1, name: 'contracted', sql: 'drop table later;' };
    await migrateTo(url, [...known, next, contracting], '0.3.0');
    expect(await refusal(open(url))).toContain(`has schema ${contracting.version}, made by authrealm 0.3.0`);
  });

  test('that is older is brought up by auto, refused by check, left by off', async () => {
    const url = await migrated();
    const [newest = 0, before = 0] = NOW.toReversed();
    await behind(url).unsafe(`delete from migration where version = ${newest}`);
    expect(await refusal(open(url, 'check'))).toStartWith(
      `the database has schema ${before}, this program needs ${newest}`,
    );
    await (await open(url, 'off')).close();
    expect(await versions(url)).toEqual(NOW.slice(0, -1));
    await behind(url).unsafe(`insert into migration values (${newest}, 'newest', 1, '0.1.0')`);
    await migrateTo(url, [...known, next]);
    expect([await versions(url), (await tables(url)).includes('later')]).toEqual([NEXT, true]);
  });

  test('that is not there is made by auto and check, and not by off', async () => {
    const url = await (await sharedServer()).freshDatabase();
    expect(await refusal(open(url, 'off'))).toMatch(/no database yet, and --migrate off makes none/);
    expect(await tables(url)).toEqual([]);
    await (await open(url, 'check')).close();
    expect(await versions(url)).toEqual(NOW);
  });

  for (const [whose, sql] of [
    ['another program', 'create table shop (id int)'],
    ['one that counts its migrations too', 'create table migration (id int); create table instance (id int)'],
    ['one that has a table of our names', 'create table realm (id int)'],
  ] as const) {
    test(`of ${whose} is refused, and nothing is made in it`, async () => {
      const url = await (await sharedServer()).freshDatabase();
      await behind(url).unsafe(sql).simple();
      const before = await tables(url);
      expect(await refusal(open(url))).toMatch(/^schema public .* belongs to another program/);
      expect(await tables(url)).toEqual(before);
    });
  }

  test('that the search path names is used, whatever stands in others', async () => {
    const url = await (await sharedServer()).freshDatabase();
    const { pathname } = new URL(url);
    await behind(url).unsafe('create table migration (id int); create schema "Our own"').simple();
    await behind(url).unsafe(`alter database ${pathname.slice(1)} set search_path to "Our own", public`);
    const engine = await open(url);
    expect(await engine.records.get(realm, [NIL_UUID])).toBeUndefined();
    await engine.close();
    expect([await tables(url), (await tables(url, 'Our own')).length]).toEqual([
      ['migration'],
      TABLES.length,
    ]);
  });

  test('is not made a second time where a new search path hides it', async () => {
    const url = await migrated();
    const { pathname } = new URL(url);
    await behind(url).unsafe('create schema other');
    await behind(url).unsafe(`alter database ${pathname.slice(1)} set search_path to other, public`);
    expect(await refusal(open(url))).toMatch(
      /the tables of authrealm are in schema public, and role postgres/,
    );
    expect(await tables(url, 'other')).toEqual([]);
  });

  test('has no place where the search path names nothing', async () => {
    const url = await (await sharedServer()).freshDatabase();
    const { pathname } = new URL(url);
    await behind(url).unsafe(`alter database ${pathname.slice(1)} set search_path to nowhere`);
    expect(await refusal(open(url))).toMatch(/^role postgres sees no schema to have its tables in/);
  });
});

describe('many processes', () => {
  test('twenty that start at once on an empty database end with one', async () => {
    const url = await (await sharedServer()).freshDatabase();
    const masterKey = join(freshFolder(), 'master.key');
    await runCommand([AUTHREALM, 'keys', 'make', masterKey]);
    const command = [AUTHREALM, 'keys', 'list', '--database', url, '--master-key-file', masterKey];
    const ended = await Promise.all(Array.from({ length: 20 }, () => runCommand(command)));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(Array(20).fill([0, '']));
    expect(new Set(ended.map(({ stdout }) => stdout.split(' ')[0])).size).toBe(1);
    const [counts] = await behind(url).unsafe(`select (select count(*)::int from migration) as migrations,
      (select count(*)::int from instance) as instances, (select count(*)::int from keyring) as keys`);
    expect(counts).toEqual({ migrations: NOW.length, instances: 1, keys: 1 });
  }, 300_000);

  test('twenty that bring a schema up at once make it once', async () => {
    const url = await migrated();
    const script = join(import.meta.dir, 'contract/postgres_upgrade_process.ts');
    const processes = Array.from({ length: 20 }, () => start([process.execPath, script, url, next.sql]));
    await Promise.all(processes.map((running) => running.line(/^ready$/)));
    for (const { process: child } of processes) child.stdin.write('go\n');
    for (const { process: child } of processes) child.stdin.flush();
    await Promise.all(processes.map((running) => running.line(/^done$/)));
    expect(await Promise.all(processes.map((running) => running.process.exited))).toEqual(Array(20).fill(0));
    expect(await versions(url)).toEqual(NEXT);
  }, 300_000);

  test('one that waits for a table lets others read it, and goes on when it may', async () => {
    const url = await migrated();
    const reader = new SQL(url, { max: 1 });
    await reader.unsafe('begin; select 1 from realm').simple();
    const going = migrateTo(url, [...known, next]);
    const engine = await open(url, 'off');
    let slowest = 0;
    for (let round = 0; round < 12; round += 1) {
      const before = performance.now();
      await engine.records.get(realm, [NIL_UUID]);
      slowest = Math.max(slowest, performance.now() - before);
      await Bun.sleep(100);
    }
    expect(slowest).toBeLessThan(1_000);
    await reader.unsafe('commit').simple();
    await reader.close();
    await going;
    expect(await versions(url)).toEqual(NEXT);
    await engine.close();
  }, 300_000);
});

/** Ends the session that has made so many changes of the schema, at once. */
const CUT = `
  create schema cut;
  create table cut.plan (at int not null);
  insert into cut.plan values (0);
  create function cut.count() returns event_trigger language plpgsql as $$
  declare done int := coalesce(nullif(current_setting('cut.done', true), ''), '0')::int + 1;
  begin
    perform set_config('cut.done', done::text, true);
    if done = (select at from cut.plan) then perform pg_terminate_backend(pg_backend_pid()); end if;
  end $$;
  create event trigger cut on ddl_command_end execute function cut.count();`;

describe('a migration that is killed', () => {
  test('at any of its statements leaves what was there, and the next start makes all of it', async () => {
    const url = await (await sharedServer()).freshDatabase();
    await behind(url).unsafe(CUT).simple();
    const cutAt = (at: number) => behind(url).unsafe(`update cut.plan set at = ${at}`);
    for (const [index, { sql }] of known.entries()) {
      const before = await tables(url);
      let cuts = 0;
      for (let at = 1; at < 200; at += 1) {
        await cutAt(at);
        const told = await refusal(migrateTo(url, known.slice(0, index + 1)));
        if (told === 'none') break;
        cuts += 1;
        expect(await tables(url)).toEqual(before);
        if (at === 1) expect(await refusal(open(url))).toContain('cannot be opened');
      }
      // The first statement is about the table that counts migrations.
      expect(cuts).toBe((sql.match(/^(create|alter) /gm) ?? []).length + 1);
      expect(await versions(url)).toEqual(NOW.slice(0, index + 1));
    }
    await cutAt(0);
    await (await open(url)).close();
    expect((await tables(url)).length).toBe(TABLES.length);
  }, 300_000);

  test('of a schema in use leaves the one before, which is served', async () => {
    const url = await migrated();
    await behind(url).unsafe(CUT).simple();
    for (const at of [1, 2]) {
      await behind(url).unsafe(`update cut.plan set at = ${at + 1}`);
      expect(await refusal(migrateTo(url, [...known, next]))).not.toBe('none');
      expect([await versions(url), (await tables(url)).includes('later')]).toEqual([NOW, false]);
      const engine = await open(url, 'check');
      expect(await engine.access.storeId()).not.toBe('');
      await engine.close();
    }
    await behind(url).unsafe('update cut.plan set at = 0');
    await migrateTo(url, [...known, next]);
    expect(await versions(url)).toEqual(NEXT);
  });

  for (const place of ['before', 'within', 'behind']) {
    test(`with its process, a pause ${place} its statements, is made by the next one`, async () => {
      const url = await migrated();
      const pause = 'select pg_sleep(1);';
      const [first = '', ...others] = next.sql.split(/(?<=;)/);
      const sql =
        place === 'within'
          ? [first, pause, ...others].join('')
          : place === 'before'
            ? pause + next.sql
            : next.sql + pause;
      const script = join(import.meta.dir, 'contract/postgres_upgrade_process.ts');
      const running = start([process.execPath, script, url, sql]);
      await running.line(/^ready$/);
      running.process.stdin.write('go\n');
      running.process.stdin.flush();
      const isPausing = `select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`;
      while ((await behind(url).unsafe(isPausing)).length === 0) await Bun.sleep(10);
      running.process.kill('SIGKILL');
      await running.process.exited;
      expect(await versions(url)).toEqual(NOW);
      // The engine hears of it when it has ended what it was told: the next one waits for that.
      await migrateTo(url, [...known, next]);
      expect([await versions(url), (await tables(url)).includes('later')]).toEqual([NEXT, true]);
    }, 300_000);
  }
});

test('a service of the release before goes on while the next schema comes', async () => {
  const url = await migrated();
  const masterKey = join(freshFolder(), 'master.key');
  writeFileSync(masterKey, Buffer.from(systemClock.randomBytes(32)).toString('hex'), { mode: 0o600 });
  const { use, close } = await serviceOn(url, masterKey);
  await use();
  const columns = (await tables(url)).map((name) => `alter table ${name} add column next_release text;`);
  await migrateTo(url, [...known, { ...next, sql: `${columns.join('')} create table later (id text);` }]);
  await use();
  await close();
});

/** A service whose every kind of statement is used, over connections that have prepared it before. */
async function serviceOn(url: string, masterKeyFile: string) {
  const service = await startService({ database: url, masterKeyFile });
  return {
    async use() {
      const token = await service.token('realms:write realms:read users:write users:read profile-infos:read');
      const planted = await plant(service.db);
      for (let round = 0; round < 8; round += 1) {
        const answers = await Promise.all(
          Array.from({ length: 4 }, () => service.get(oidcPath(planted), token)),
        );
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      }
      const key = { 'Idempotency-Key': crypto.randomUUID() };
      const body = { data: { type: 'authentication-realm', name: 'again' } };
      const answers = [0, 1].map(() => service.post('/v2/authentication-realms', token, body, key));
      const [made, again] = await Promise.all(answers);
      expect([made?.status, [201, 409].includes(again?.status ?? 0)]).toEqual([201, true]);
      const users = `/v2/authentication-realms/${planted.realm}/user-authentication-info`;
      expect((await service.get(`${users}?sort=-updated_at`, token)).status).toBe(200);
      expect((await service.del(`${users}/${planted.user}`, token)).status).toBe(204);
      const { records } = service.db.engine;
      expect((await records.changes(planted.realm, 0, 100)).length).toBeGreaterThan(5);
      const picture = await records.openSnapshot();
      expect(await picture.count(oidcProfileInfo, planted.realm)).toBe(0);
      await picture.close();
    },
    close: () => service.stop(),
  };
}
