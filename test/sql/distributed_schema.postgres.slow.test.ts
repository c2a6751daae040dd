import { afterAll, describe, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, parseDatabase } from '../../src/ops/store/open.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { distributionColumn, INSTANCE_TABLES, REALM_TABLES } from '../support/table_names.ts';

/** The PostgreSQL schema, checked for the requirements of a distributed engine. */

const url = await (await sharedServer()).freshDatabase();
const address = parseDatabase(url);
if (!address) throw new Error('not a PostgreSQL URL');
await (await openEngine(address, 'auto', { version: 'test', clock: systemClock })).close();
const sql = new SQL(url, { max: 1 });
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
    expect(ofRealm.filter(({ table, first }) => first !== distributionColumn(table))).toEqual([]);
  });

  test('the realm of a row is its first column, not null, and a UUID', async () => {
    const columns = await rows<{ table: string; position: number; type: string; not_null: boolean }>(
      `select a.attrelid::regclass::text as table, a.attnum as position, a.atttypid::regtype::text as type,
         a.attnotnull as not_null
       from pg_attribute a join pg_class t on t.oid = a.attrelid
       where (t.relname, a.attname) in (${REALM_TABLES.map((table) => `('${table}', '${distributionColumn(table)}')`)})
         and t.relkind = 'r' and t.relnamespace = ${OURS}`,
    );
    const ofRealm = columns.filter(({ table }) => REALM_TABLES.includes(table));
    expect(ofRealm.map(({ table }) => table).toSorted()).toEqual(REALM_TABLES.toSorted());
    expect(
      ofRealm.filter(({ position, type, not_null }) => position !== 1 || type !== 'uuid' || !not_null),
    ).toEqual([]);
  });

  test('a foreign key refers to its own realm, or from an instance table to another', async () => {
    const found = await foreignKeys();
    expect(found.length).toBeGreaterThan(0);
    const isInside = ({ table, target, columns }: ForeignKey) =>
      REALM_TABLES.includes(table)
        ? REALM_TABLES.includes(target) &&
          columns.split(' ').includes(`${distributionColumn(table)}=${distributionColumn(target)}`)
        : INSTANCE_TABLES.includes(target);
    expect(found.filter((each) => !isInside(each))).toEqual([]);
  });

  test('the table list names a table after the tables it refers to', async () => {
    const order = [...INSTANCE_TABLES, ...REALM_TABLES];
    const found = await foreignKeys();
    const isAfter = ({ table, target }: ForeignKey) => order.indexOf(target) < order.indexOf(table);
    expect(found.filter((each) => !isAfter(each))).toEqual([]);
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
    // Every database has plpgsql.
    ['extension', `select extname from pg_extension where extname <> 'plpgsql'`],
  ])('the schema has no %s', async (_kind, text) => {
    expect(await rows(text)).toEqual([]);
  });
});
