import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal } from '../../src/model/fault.ts';
import { keyColumns, membersOf, type Resource } from '../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfileInfo, RESOURCES, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { enableWal, sqliteMigrations } from '../../src/ops/store/sqlite/open.ts';
import { dependentsOf } from '../../src/records/store/cascade.ts';
import { SQLITE, sqliteStatements } from '../../src/records/store/sqlite/dialect.ts';
import { atRowId } from '../../src/records/store/sqlite/row_id.ts';
import { type Migration, migrationsOf, servesFromOf } from '../../src/sql/migrations.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { migrateSqlite } from '../../src/sql/sqlite/migrate.ts';
import { COUNTED_RESOURCES, countColumn } from '../../src/sql/tables/record_counts.ts';
import { parametersOf } from '../../src/sql/tables/records.ts';
import { AUTHREALM, runCommand, runTogether } from '../support/processes.ts';
import { withoutRealmNumbers } from '../support/query_plans.ts';
import { freshFolder, ISSUER } from '../support/service.ts';
import { INSTANCE_TABLES } from '../support/table_names.ts';

const program = { version: '0.1.0', clock: systemClock };
const known = sqliteMigrations();
const next: Migration = {
  version: known.length + 1,
  name: 'next',
  sql: 'alter table realm add column motto text; create table later (id text) strict;',
};

async function createDatabase(): Promise<string> {
  const path = join(freshFolder(), 'migrated.db');
  (await openEngine({ engine: 'sqlite', path }, 'auto', program)).close();
  return path;
}

const LARGE_ROWS = 80_000;

/** A database of several MB. */
async function createLargeDatabase(): Promise<string> {
  const path = await createDatabase();
  const db = connectSqlite(path);
  const insert = db.prepare('insert into realm_clock (realm_id, seq) values (?, 1)');
  db.transaction(() => {
    for (let row = 0; row < LARGE_ROWS; row += 1) insert.run(`${row}`.padEnd(36, '-'));
  })();
  db.close();
  return path;
}

function tables(path: string): string[] {
  const db = new Database(path, { readonly: true });
  const names = db.query<{ name: string }, []>('select name from sqlite_schema order by name').all();
  db.close();
  return names.map(({ name }) => name);
}

describe('migrations', () => {
  test('migrations are numbered without gaps', () => {
    expect(known.map(({ version }) => version)).toEqual(known.map((_, index) => index + 1));
  });

  test('the oldest program that a migration serves is at most its own version, and the same on both engines', () => {
    for (const each of known) expect(servesFromOf(each)).toBeLessThanOrEqual(each.version);
    expect(known.map(servesFromOf)).toEqual(migrationsOf('postgres').map(servesFromOf));
    expect(servesFromOf({ ...next, sql: '-- serves: 1\nselect 1;' })).toBe(1);
    expect(servesFromOf({ ...next, sql: 'select 1;\n-- serves: 1\n' })).toBe(next.version);
  });

  test('--migrate auto migrates an older file and saves a copy of it with mode 0600', async () => {
    const path = await createDatabase();
    const before = tables(path);
    const db = connectSqlite(path);
    await migrateSqlite(db, 'auto', [...known, next], { ...program, version: '0.2.0' });
    db.close();
    expect(tables(path)).toContain('later');
    const copy = `${path}.schema-${known.length}`;
    expect(tables(copy)).toEqual(before);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path)).filter((name) => name.includes('partial'))).toEqual([]);
  });

  test('a first start saves no copy', async () => {
    const path = await createDatabase();
    expect(existsSync(`${path}.schema-0`)).toBe(false);
  });

  test('a newer schema is refused with the version of authrealm that it needs', async () => {
    const path = await createDatabase();
    const db = connectSqlite(path);
    await migrateSqlite(db, 'auto', [...known, next], { ...program, version: '0.2.0' });
    db.close();
    const refusal = await openEngine({ engine: 'sqlite', path }, 'auto', program).catch(
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(Refusal);
    expect(String(refusal)).toContain('install authrealm 0.2.0 or newer');
  });

  test('a failed migration leaves the file unchanged', async () => {
    const path = await createDatabase();
    const before = tables(path);
    const db = connectSqlite(path);
    const broken = {
      ...next,
      sql: 'create table half (id text) strict; create table half (id text) strict;',
    };
    expect(migrateSqlite(db, 'auto', [...known, broken], program)).rejects.toThrow();
    db.close();
    expect(tables(path)).toEqual(before);
  });

  test('twenty concurrent migrations apply each migration once', async () => {
    const path = await createDatabase();
    const connections = Array.from({ length: 20 }, () => connectSqlite(path));
    await Promise.all(connections.map((db) => migrateSqlite(db, 'auto', [...known, next], program)));
    const rows = connections[0]?.query('select version from migration order by version').all();
    expect(rows).toEqual([...known, next].map(({ version }) => ({ version })));
    for (const db of connections) db.close();
  });

  test('of six processes that start on a large file one migrates; the copy is complete and replaces no other', async () => {
    for (const hasEarlier of [false, true, false]) {
      const path = await createLargeDatabase();
      const copy = `${path}.schema-${known.length}`;
      if (hasEarlier) writeFileSync(copy, 'of an earlier upgrade');
      const script = join(import.meta.dir, 'contract/sqlite_upgrade_process.ts');
      await runTogether(6, [process.execPath, script, path, next.sql], /^done$/);

      expect(tables(path)).toContain('later');
      const made = hasEarlier ? `${copy}.2` : copy;
      expect(tables(made)).not.toContain('later');
      const copyDb = new Database(made, { readonly: true });
      expect(copyDb.query('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
      expect(copyDb.query('select count(*) as n from realm_clock').get()).toEqual({ n: LARGE_ROWS });
      copyDb.close();
      if (hasEarlier) expect(readFileSync(copy, 'utf8')).toBe('of an earlier upgrade');
      const copies = readdirSync(dirname(path)).filter((name) => /schema|partial/.test(name));
      expect(copies).toHaveLength(hasEarlier ? 2 : 1);
    }
  }, 300_000);

  const foreignSchema = 'create table theirs (id integer)';
  const newer = `create table instance (id integer) strict;
    create table migration (version integer, name text, applied_at integer, program_version text, serves_from integer) strict;
    insert into migration values (900, 'far', 0, '9.0.0', 900)`;
  const older = newer.replaceAll('900', '0');
  const untouched: [string, string, 'auto' | 'check', RegExp][] = [
    ["another program's file", foreignSchema, 'auto', /belongs to another program/],
    [
      "another program's file with a migration table",
      'create table migration (n)',
      'auto',
      /another program/,
    ],
    ['a newer schema', newer, 'auto', /install authrealm 9\.0\.0 or newer/],
    [
      'an older schema with --migrate check',
      older,
      'check',
      /start authrealm serve of this release, or pass --migrate auto/,
    ],
  ];
  test.each(untouched)('a start on %s is refused and changes no byte', async (_name, sql, mode, sentence) => {
    const path = join(freshFolder(), 'other.db');
    const db = new Database(path);
    db.run(sql);
    db.close();
    const before = readFileSync(path);
    await expect(openEngine({ engine: 'sqlite', path }, mode, program)).rejects.toThrow(sentence);
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(dirname(path))).toEqual(['other.db']);
  });

  test('--migrate check creates a missing database', async () => {
    const path = join(freshFolder(), 'new.db');
    (await openEngine({ engine: 'sqlite', path }, 'check', program)).close();
    expect(tables(path)).toContain('realm');
  });

  test('a database that cannot have a write-ahead log is refused with one sentence', () => {
    const db = new Database(':memory:');
    expect(() => enableWal(db)).toThrow(/cannot use a write-ahead log.*local file system/);
    db.close();
  });

  test('commands other than serve and init migrate a schema only with --migrate auto', async () => {
    const path = await createDatabase();
    const db = new Database(path);
    db.run('update migration set version = 0, serves_from = 0');
    db.close();
    const database = ['--database', `sqlite:${path}`];
    const lines = join(dirname(path), 'lines');
    writeFileSync(lines, '');
    for (const command of [
      ['client', 'list'],
      ['keys', 'list'],
      ['import', lines],
    ]) {
      const { code, stderr } = await runCommand([AUTHREALM, ...command, ...database]);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/start authrealm serve .* --migrate auto/)]);
    }
    expect(existsSync(`${path}.schema-0`)).toBe(false);
    // Only the version number is older, so the migration must fail; the copy shows that it began.
    const migrating = await runCommand([AUTHREALM, 'client', 'list', ...database, '--migrate', 'auto']);
    expect([migrating.code, migrating.stderr]).toEqual([1, expect.stringContaining('already exists')]);
    expect(existsSync(`${path}.schema-0`)).toBe(true);
  }, 300_000);
});

/** The columns that lists and reverse lookups search by and that have their own index. */
const FILTERED: ReadonlyMap<Resource, readonly string[]> = new Map([
  [user as Resource, ['name_key', 'email_key']],
  [passwordProfileInfo, ['username_key']],
]);

describe('the schema follows the resource descriptions', () => {
  const db = new Database(':memory:');
  for (const { sql } of known) db.run(sql);
  type Info = { name: string; notnull: number; pk: number };
  const columns = (table: string) =>
    db.query<Info, [string]>('select * from pragma_table_info(?)').all(table);

  const keyOf = (resource: Resource): string => keyColumns(resource).at(-1) ?? '';

  for (const resource of RESOURCES) {
    const folded = membersOf(resource).flatMap(({ name, annotation }) =>
      annotation.foldedKeyColumn ? [name] : [],
    );
    const hashed = membersOf(resource).flatMap(({ name, annotation }) =>
      annotation.hashColumn ? [name] : [],
    );

    test(`${resource.table} has the columns and the key of its description`, () => {
      const found = columns(resource.table);
      const statements = sqliteStatements(resource);
      expect(found.map(({ name }) => name).sort()).toEqual(['slot', ...statements.columns].sort());
      expect(found.filter(({ pk }) => pk > 0).map(({ name }) => name)).toEqual(['slot']);
      expect(indexes(resource.table, 1)).toContain([...new Set(['realm_id', keyOf(resource)])].join());
      for (const key of keyColumns(resource))
        expect(statements.select).toContain(`${key} = ${parametersOf(resource, SQLITE)(key)}`);
    });

    test(`${resource.table} has a folded key wherever it has the member`, () => {
      const isNeeded = new Map(columns(resource.table).map(({ name, notnull }) => [name, notnull]));
      for (const name of folded) expect(isNeeded.get(`${name}_key`)).toBe(isNeeded.get(name) as number);
    });

    test(`${resource.table} has an indexed hash wherever it has the member`, () => {
      const isNeeded = new Map(columns(resource.table).map(({ name, notnull }) => [name, notnull]));
      for (const name of hashed) {
        expect(isNeeded.get(`${name}_crc`)).toBe(isNeeded.get(name) as number);
        expect(indexes(resource.table, 0)).toContain(`${name}_crc`);
      }
    });

    test(`${resource.table} has indexes for its unique members, list orders and filters`, () => {
      for (const members of resource.unique) {
        const expected = members.map((member) => (folded.includes(member) ? `${member}_key` : member));
        expect(indexes(resource.table, 1)).toContain(['realm_id', ...expected].join());
      }
      const scope = keyColumns(resource).slice(0, -1);
      const sorts = resource === user ? ['created_at', 'updated_at'] : ['created_at'];
      const expected = [
        ...sorts.map((sort) => [...scope, sort, keyOf(resource)].join()),
        ...(FILTERED.get(resource) ?? []).map((column) => `realm_id,${column}`),
      ];
      expect(indexes(resource.table, 0)).toEqual(expect.arrayContaining(expected));
    });

    test(`${resource.table}: the dependents of a record are found by an index`, () => {
      for (const { select, count } of dependentsOf(resource, RESOURCES, SQLITE)) {
        for (const plan of [planOf(select, ISSUER, ISSUER, 5), planOf(count, ISSUER, ISSUER)])
          expect(plan).toEqual([
            expect.stringMatching(/^SEARCH \w+ USING (COVERING )?INDEX \w+ \(realm_id=\?/),
          ]);
      }
    });

    test(`${resource.table}: a lookup is one search by row ID, or one in the key's index`, () => {
      const statements = sqliteStatements(resource);
      const key = keyColumns(resource).map(() => ISSUER);
      const selectAt = atRowId(statements.select);
      expect(planOf(selectAt, ...key, 0)).toEqual([
        `SEARCH ${resource.table} USING INTEGER PRIMARY KEY (rowid=?)`,
      ]);
      expect(planOf(statements.select, ...key)).toEqual([
        expect.stringMatching(/^SEARCH \w+ USING INDEX sqlite_autoindex_\w+_1 \(realm_id=\?/),
      ]);
    });

    test(`${resource.table}: a scan reads the key's index in order, without sorting`, () => {
      const { scan, scanRealm, selectInRealm: holder, removeAmong } = sqliteStatements(resource);
      for (const plan of [
        planOf(scan, ISSUER, ISSUER, 5),
        planOf(scanRealm, ISSUER, ISSUER, 5),
        planOf(holder, ISSUER, ISSUER),
        planOf(removeAmong, ISSUER, '[]').slice(0, 1),
      ]) {
        expect(plan).toEqual([
          expect.stringMatching(/^SEARCH \w+ USING (COVERING )?INDEX sqlite_autoindex_\w+_1 /),
        ]);
      }
    });
  }

  test.each([oidcProfileInfo, passwordProfileInfo])(
    '$table: a scan below users reads the index of their lists in order, without sorting',
    (resource) => {
      const plan = planOf(sqliteStatements(resource).scanBelow, ISSUER, ISSUER, ISSUER);
      expect(plan.at(-1)).toBe(
        `SEARCH ${resource.table} USING INDEX ${resource.table}_of_user (realm_id=? AND user_id>? AND user_id<?)`,
      );
      expect(plan.join()).not.toContain('TEMP B-TREE');
    },
  );

  function planOf(sql: string, ...values: (string | number)[]): readonly string[] {
    const plan = db.prepare<{ detail: string }, (string | number)[]>(`explain query plan ${sql}`);
    return withoutRealmNumbers(plan.all(...values).map(({ detail }) => detail));
  }

  function indexes(table: string, isUnique: number): string[] {
    const found = db
      .query<{ name: string }, [string, number]>('select name from pragma_index_list(?) where "unique" = ?')
      .all(table, isUnique);
    return found.map(({ name }) =>
      db
        .query<{ name: string }, [string]>('select name from pragma_index_info(?) order by seqno')
        .all(name)
        .map((column) => column.name)
        .join(),
    );
  }

  test('the clock of a realm has a count for each resource directly below a realm', () => {
    const counts = columns('realm_clock').flatMap(({ name }) => (name.endsWith('_count') ? [name] : []));
    expect(counts.sort()).toEqual(COUNTED_RESOURCES.map(countColumn).sort());
  });

  test('the key of every realm table begins with the realm; the other tables are instance tables', () => {
    // The migration table is created before the first migration.
    // In SQLite the log of the installation has no realm.
    const instanceTables = [...INSTANCE_TABLES.filter((name) => name !== 'migration'), 'act'];
    const all = db.query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`).all();
    const others = [...instanceTables, ...[user, passwordProfileInfo].map(({ table }) => `${table}_word`)];
    const ofRealms = all.map(({ name }) => name).filter((name) => !others.includes(name));
    for (const table of ofRealms) {
      const keys = columns(table).some(({ name }) => name === 'slot' || name === 'number')
        ? indexes(table, 1).map((index) => index.split(',')[0])
        : columns(table).flatMap(({ name, pk }) => (pk === 1 ? [name] : []));
      expect([table, ...new Set(keys)]).toEqual([table, 'realm_id']);
    }
    expect(ofRealms.length + others.length).toBe(all.length);
  });
});
