import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { systemClock } from '../../src/platform/clock.ts';
import { openEngine, parseDatabase } from '../../src/store/open.ts';
import { citusSql } from '../../src/store/postgres/citus.ts';
import { INSTANCE_TABLES, REALM_COLUMN, REALM_TABLES } from '../../src/store/postgres/tables.ts';
import { sharedServer } from '../support/postgres_server.ts';

/** The schema as PostgreSQL has it, against what a distributed engine needs of it. */

let sql: SQL;
beforeAll(async () => {
  const url = await (await sharedServer()).freshDatabase();
  const address = parseDatabase(url);
  if (!address) throw new Error('no address of PostgreSQL');
  await (await openEngine(address, 'auto', { version: 'test', clock: systemClock })).close();
  sql = new SQL(url, { max: 1 });
});
afterAll(() => sql.close());

async function rows<R>(text: string): Promise<readonly R[]> {
  return (await sql.unsafe(text)) as R[];
}

const OURS = 'current_schema()::regnamespace';

interface Key {
  readonly table: string;
  readonly index: string;
  readonly first: string;
}

interface ForeignKey {
  readonly table: string;
  readonly target: string;
  readonly columns: string;
}

const foreignKeys = () =>
  rows<ForeignKey>(`select c.conrelid::regclass::text as table, c.confrelid::regclass::text as target,
      (select string_agg(f.attname || '=' || t.attname, ' ' order by place)
        from unnest(c.conkey, c.confkey) with ordinality as k (own, other, place)
        join pg_attribute f on f.attrelid = c.conrelid and f.attnum = k.own
        join pg_attribute t on t.attrelid = c.confrelid and t.attnum = k.other) as columns
    from pg_constraint c where c.contype = 'f' and c.connamespace = ${OURS}`);

describe('the schema', () => {
  test('every table is an instance table or realm data, and none is both', async () => {
    const found = await rows<{ name: string }>(
      `select relname as name from pg_class where relkind in ('r', 'p') and relnamespace = ${OURS}`,
    );
    const listed = [...INSTANCE_TABLES, ...REALM_TABLES];
    expect(listed.toSorted()).toEqual(found.map(({ name }) => name).toSorted());
  });

  test('every primary and unique key of realm data begins with the realm', async () => {
    const keys =
      await rows<Key>(`select i.indrelid::regclass::text as table, i.indexrelid::regclass::text as index,
        a.attname as first from pg_index i join pg_class t on t.oid = i.indrelid
        left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      where i.indisunique and t.relnamespace = ${OURS}`);
    const ofRealm = keys.filter(({ table }) => REALM_TABLES.includes(table));
    expect(new Set(ofRealm.map(({ table }) => table))).toEqual(new Set(REALM_TABLES));
    expect(ofRealm.filter(({ first }) => first !== REALM_COLUMN)).toEqual([]);
  });

  test('the realm of a row stands in its first column, is always said, and is a UUID', async () => {
    const columns = await rows<{ table: string; place: number; type: string; is_said: boolean }>(
      `select a.attrelid::regclass::text as table, a.attnum as place, a.atttypid::regtype::text as type,
         a.attnotnull as is_said
       from pg_attribute a join pg_class t on t.oid = a.attrelid
       where a.attname = '${REALM_COLUMN}' and t.relkind = 'r' and t.relnamespace = ${OURS}`,
    );
    const ofRealm = columns.filter(({ table }) => REALM_TABLES.includes(table));
    expect(ofRealm.map(({ table }) => table).toSorted()).toEqual(REALM_TABLES.toSorted());
    expect(ofRealm.filter(({ place, type, is_said }) => place !== 1 || type !== 'uuid' || !is_said)).toEqual(
      [],
    );
  });

  test('a foreign key stays in its realm, or among instance tables', async () => {
    const found = await foreignKeys();
    expect(found.length).toBeGreaterThan(0);
    const isInside = ({ table, target, columns }: ForeignKey) =>
      REALM_TABLES.includes(table)
        ? REALM_TABLES.includes(target) && columns.split(' ').includes(`${REALM_COLUMN}=${REALM_COLUMN}`)
        : INSTANCE_TABLES.includes(target);
    expect(found.filter((each) => !isInside(each))).toEqual([]);
  });

  test('a table stands behind those that it refers to', async () => {
    const order = [...INSTANCE_TABLES, ...REALM_TABLES];
    const found = await foreignKeys();
    const isBehind = ({ table, target }: ForeignKey) => order.indexOf(target) < order.indexOf(table);
    expect(found.filter((each) => !isBehind(each))).toEqual([]);
  });

  test.each([
    ['sequence', `select relname from pg_class where relkind = 'S' and relnamespace = ${OURS}`],
    ['view', `select relname from pg_class where relkind in ('v', 'm', 'f') and relnamespace = ${OURS}`],
    [
      'generated column',
      `select attname from pg_attribute a join pg_class t on t.oid = a.attrelid
       where t.relnamespace = ${OURS} and (attidentity <> '' or attgenerated <> '')`,
    ],
    ['trigger', 'select tgname from pg_trigger where not tgisinternal'],
    [
      'rule',
      `select r.rulename from pg_rewrite r join pg_class t on t.oid = r.ev_class where t.relnamespace = ${OURS}`,
    ],
    ['function', `select proname from pg_proc where pronamespace = ${OURS}`],
    ['type', `select typname from pg_type where typtype in ('d', 'e', 'r') and typnamespace = ${OURS}`],
    // It comes with every database.
    ['extension', `select extname from pg_extension where extname <> 'plpgsql'`],
  ])('there is no %s', async (_what, text) => {
    expect(await rows(text)).toEqual([]);
  });
});

/**
 * Stands in for what Citus offers, by the names, arguments and catalogue columns of its documentation, and writes down
 * what is asked of it. A local table that refers to a new reference table comes into the catalogue as Citus has it.
 * What it cannot prove is that Citus accepts the tables.
 */
const STAND_IN = `create schema stand_in;
  create table stand_in.pg_dist_partition (logicalrelid regclass primary key, partmethod "char" not null,
    partkey text, colocate_with text, repmodel "char" not null);
  create table stand_in.asked (place integer generated always as identity, call text not null);
  create function stand_in.create_reference_table(table_name regclass) returns void language sql as $$
    insert into stand_in.asked (call) values ('reference ' || table_name);
    insert into stand_in.pg_dist_partition values (table_name, 'n', null, null, 't')
      on conflict (logicalrelid) do update set repmodel = excluded.repmodel;
    insert into stand_in.pg_dist_partition
      select conrelid, 'n', null, null, 's' from pg_constraint where contype = 'f' and confrelid = table_name
      on conflict do nothing;
  $$;
  create function stand_in.create_distributed_table(table_name regclass, distribution_column text,
    distribution_type text default 'hash', colocate_with text default 'default', shard_count int default null)
  returns void language sql as $$
    insert into stand_in.asked (call)
      values ('distributed ' || table_name || ' by ' || distribution_column || ' with ' || colocate_with);
    insert into stand_in.pg_dist_partition values (table_name, 'h', distribution_column, colocate_with, 's');
  $$;
  set search_path = public, stand_in`;

describe('migrate --print citus, over stand-ins for its functions and its catalogue', () => {
  const [first, ...others] = REALM_TABLES;
  const all = [
    ...INSTANCE_TABLES.map((table) => `reference ${table}`),
    `distributed ${first} by ${REALM_COLUMN} with none`,
    ...others.map((table) => `distributed ${table} by ${REALM_COLUMN} with ${first}`),
  ];

  /** What a run asks of Citus. */
  async function asked(): Promise<readonly string[]> {
    await sql.unsafe('delete from asked').simple();
    await sql.unsafe(citusSql()).simple();
    return (await rows<{ call: string }>('select call from asked order by place')).map(({ call }) => call);
  }

  beforeAll(async () => {
    await sql.unsafe(STAND_IN).simple();
  });

  test('distributes every table once, each behind those that it refers to', async () => {
    expect(await asked()).toEqual(all);
  });

  test('asks for nothing when it is run again', async () => {
    expect(await asked()).toEqual([]);
  });

  test('goes on where it was interrupted, and takes in what a migration has added', async () => {
    const left = ['client_realm', 'user_info', 'change'];
    const names = left.map((table) => `'${table}'::regclass`).join();
    await sql.unsafe(`delete from pg_dist_partition where logicalrelid in (${names})`);
    expect(await asked()).toEqual(all.filter((call) => left.includes(call.split(' ')[1] ?? '')));
  });
});
