import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemAmbient } from '../src/ambient.ts';
import { Refusal } from '../src/domain/fault.ts';
import { keyColumns, membersOf } from '../src/domain/resource.ts';
import { RESOURCES } from '../src/domain/resources.ts';
import { openEngine } from '../src/store/open.ts';
import { connect } from '../src/store/sqlite/connection.ts';
import { type Migration, migrate } from '../src/store/sqlite/migrate.ts';
import { knownMigrations } from '../src/store/sqlite/open.ts';
import { statementsFor } from '../src/store/statements.ts';
import { freshFolder, ISSUER } from './kit.ts';

const program = { version: '0.1.0', ambient: systemAmbient };
const known = knownMigrations();
const next: Migration = {
  version: known.length + 1,
  name: 'next',
  sql: 'alter table realm add column motto text; create table later (id text) strict;',
};

async function fresh(): Promise<string> {
  const path = join(freshFolder(), 'migrated.db');
  (await openEngine({ engine: 'sqlite', path }, 'auto', program)).close();
  return path;
}

function tables(path: string): string[] {
  const db = new Database(path, { readonly: true });
  const names = db.query<{ name: string }, []>('select name from sqlite_schema order by name').all();
  db.close();
  return names.map(({ name }) => name);
}

describe('migrations', () => {
  test('are numbered without gaps', () => {
    expect(known.map(({ version }) => version)).toEqual(known.map((_, index) => index + 1));
  });

  test('auto brings an older file up and keeps a copy of it, 0600', async () => {
    const path = await fresh();
    const before = tables(path);
    const db = connect(path);
    await migrate(db, 'auto', [...known, next], { ...program, version: '0.2.0' });
    db.close();
    expect(tables(path)).toContain('later');
    const copy = `${path}.schema-${known.length}`;
    expect(tables(copy)).toEqual(before);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path)).filter((name) => name.includes('partial'))).toEqual([]);
  });

  test('a first start keeps no copy', async () => {
    const path = await fresh();
    expect(existsSync(`${path}.schema-0`)).toBe(false);
  });

  test('check refuses an older file and names the way; off leaves it', async () => {
    const path = await fresh();
    const db = connect(path);
    const run = (mode: 'check' | 'off') => migrate(db, mode, [...known, next], program);
    expect(run('check')).rejects.toThrow(/--migrate auto/);
    await run('off');
    db.close();
    expect(tables(path)).not.toContain('later');
  });

  test('a newer schema is refused naming the version that is needed', async () => {
    const path = await fresh();
    const db = connect(path);
    await migrate(db, 'auto', [...known, next], { ...program, version: '0.2.0' });
    db.close();
    const refusal = await openEngine({ engine: 'sqlite', path }, 'auto', program).catch(
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(Refusal);
    expect(String(refusal)).toContain('install authrealm 0.2.0 or newer');
  });

  test('a migration that fails leaves the file as it was', async () => {
    const path = await fresh();
    const before = tables(path);
    const db = connect(path);
    const broken = {
      ...next,
      sql: 'create table half (id text) strict; create table half (id text) strict;',
    };
    expect(migrate(db, 'auto', [...known, broken], program)).rejects.toThrow();
    db.close();
    expect(tables(path)).toEqual(before);
  });

  test('twenty at once apply each migration once', async () => {
    const path = await fresh();
    const connections = Array.from({ length: 20 }, () => connect(path));
    await Promise.all(connections.map((db) => migrate(db, 'auto', [...known, next], program)));
    const rows = connections[0]?.query('select version from migration order by version').all();
    expect(rows).toEqual([...known, next].map(({ version }) => ({ version })));
    for (const db of connections) db.close();
  });

  test("another program's file is refused, not filled", async () => {
    const path = join(freshFolder(), 'other.db');
    const db = new Database(path);
    db.run('create table theirs (id integer)');
    db.close();
    expect(openEngine({ engine: 'sqlite', path }, 'auto', program)).rejects.toThrow(
      /belongs to another program/,
    );
  });

  test('what is no database is refused with a sentence', async () => {
    const path = join(freshFolder(), 'text.db');
    await Bun.write(
      path,
      'this is a text file and long enough to be read as a header by anybody who tries'.repeat(20),
    );
    expect(openEngine({ engine: 'sqlite', path }, 'auto', program)).rejects.toThrow(/cannot be opened/);
  });
});

describe('the schema is what the descriptions say', () => {
  const db = new Database(':memory:');
  for (const { sql } of known) db.run(sql);
  type Info = { name: string; notnull: number; pk: number };
  const columns = (table: string) =>
    db.query<Info, [string]>('select * from pragma_table_info(?)').all(table);

  for (const resource of RESOURCES) {
    test(`${resource.table}: columns, keys and indexes`, () => {
      const found = columns(resource.table);
      const statements = statementsFor(resource, RESOURCES);
      const inserted = /\(([^)]*)\)/.exec(statements.insert)?.[1]?.split(', ') ?? [];
      expect(found.map(({ name }) => name).sort()).toEqual([...inserted].sort());

      const keys = keyColumns(resource);
      const primary = found.filter(({ pk }) => pk > 0).sort((left, right) => left.pk - right.pk);
      expect(primary.map(({ name }) => name)).toEqual([...new Set(['realm_id', keys.at(-1) ?? ''])]);
      for (const key of keys) expect(statements.select).toContain(`${key} = ?`);

      for (const members of resource.unique) {
        const folded = new Set(
          membersOf(resource).flatMap((each) => (each.placement.folded ? [each.name] : [])),
        );
        const wanted = members.map((member) => (folded.has(member) ? `${member}_key` : member));
        expect(indexes(resource.table, 1)).toContain(['realm_id', ...wanted].join());
      }
      if (keys.includes('user_id')) {
        expect(indexes(resource.table, 0)).toContain('realm_id,user_id,created_at,id');
      }
    });

    test(`${resource.table}: a lookup is one search of the primary key`, () => {
      const { select } = statementsFor(resource, RESOURCES);
      const plan = db.prepare<{ detail: string }, string[]>(`explain query plan ${select}`);
      const details = plan.all(...keyColumns(resource).map(() => ISSUER)).map(({ detail }) => detail);
      expect(details).toHaveLength(1);
      expect(details[0]).toMatch(/^SEARCH \w+ USING PRIMARY KEY \(realm_id=\?/);
    });
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

  test('every table of a realm begins its primary key with the realm; the others are instance tables', () => {
    const instanceTables = ['client', 'client_realm', 'instance', 'keyring', 'signing_key'];
    const all = db.query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`).all();
    const ofRealms = all.map(({ name }) => name).filter((name) => !instanceTables.includes(name));
    for (const table of ofRealms) {
      expect([table, columns(table).find(({ pk }) => pk === 1)?.name]).toEqual([table, 'realm_id']);
    }
    expect(ofRealms.length + instanceTables.length).toBe(all.length);
  });
});
