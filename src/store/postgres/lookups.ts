import type { IncludedRecords, RecordWithIncluded, Store } from '../../directory/store.ts';
import { type AnyRecord, type Key, keyColumns, type RecordOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import type { Admission } from '../admission.ts';
import { newestBelowText, newestOf } from '../lists/newest_below.ts';
import { postgresStatements } from './dialect.ts';
import type { ConnectionPool } from './pool.ts';
import { openQueryBatches, uniqueRowPerQuery } from './query_batches.ts';

type Row = Record<string, unknown>;

/** Looks up the record of a key. */
type Lookup<T> = (realm: string, key: Key) => Promise<T | undefined>;

/** Lookups by ID. Those of one resource in one realm that include the same child resources share a statement. */
export function openLookups(pool: ConnectionPool, admission: Admission): Pick<Store, 'get' | 'getIncluding'> {
  function lookupOf<T>({ one, many }: LookupStatements, decode: (row: Row) => T): Lookup<T> {
    async function selectOne(key: Key): Promise<T | undefined> {
      const [row] = (await pool.query(one, key)).rows;
      return row && decode(row);
    }

    return openQueryBatches<Key, T | undefined>(admission, async (realm, keys) => {
      const [key] = keys as readonly [Key];
      if (keys.length === 1) return [await selectOne(key)];
      if (many === undefined) {
        // The key of a realm is the realm alone, so all of them look up the same record.
        const record = await selectOne(key);
        return keys.map(() => record);
      }
      const { rows } = await pool.query(many, [realm, ...keyColumnArrays(keys)]);
      return uniqueRowPerQuery(rows, keys.length).map((row) => row && decode(row));
    });
  }

  const lookups = new Map(
    RESOURCES.map((resource) => {
      const { decode } = postgresStatements(resource);
      return [resource, lookupOf<AnyRecord>(lookupStatements(resource, []), decode)];
    }),
  );
  const including = new Map<string, Lookup<RecordWithIncluded>>();

  function lookupIncluding(resource: Resource, children: readonly Resource[]): Lookup<RecordWithIncluded> {
    const name = [resource, ...children].map((each) => each.name).join();
    let lookup = including.get(name);
    if (!lookup) {
      const statements = lookupStatements(resource, children);
      lookup = lookupOf(statements, (row) => decodeIncluding(resource, children, row));
      including.set(name, lookup);
    }
    return lookup;
  }

  return {
    get: <R extends Resource>(resource: R, key: Key) => {
      const lookup = lookups.get(resource);
      if (!lookup) throw new Error(`${resource.name} has no table`);
      return lookup(key[0], key) as Promise<RecordOf<R> | undefined>;
    },
    getIncluding: (resource, key, children) => lookupIncluding(resource, children)(key[0], key),
  };
}

/** One array literal for each key column below the realm, with the values of all keys. */
function keyColumnArrays(keys: readonly Key[]): readonly string[] {
  const [, ...below] = keys[0] as Key;
  return below.map((_, at) => `{${keys.map((key) => key[at + 1]).join()}}`);
}

type LookupStatements = ReturnType<typeof lookupStatements>;

/**
 * The statements of lookups that include records of child resources: `one` selects one key, and `many` keys of one realm with
 * `query_number`, the number of the key. The realm itself has no other key. Each names the realm of every table that it reads.
 */
function lookupStatements(resource: Resource, children: readonly Resource[]) {
  const { table } = resource;
  const { visible } = postgresStatements(resource);
  const [realm, ...below] = keyColumns(resource);
  const columns = [
    ...visible,
    ...children.map((child, at) => `${includedColumn(resource, child)} as included_${at}`),
  ];
  const selected = columns.join(', ');
  const ownKey = below.map((column, at) => `${table}.${column} = $${at + 2}`);
  const one = `select ${selected} from ${table} where ${[`${realm} = $1`, ...ownKey].join(' and ')}`;
  if (below.length === 0) return { one, many: undefined };
  const arrays = below.map((_, at) => `$${at + 2}::uuid[]`).join(', ');
  const names = below.map((column) => `key_${column}`);
  const keyMatches = below.map((column) => `${table}.${column} = k.key_${column}`);
  const many = `select ${selected}, k.query_number::integer as query_number
    from unnest(${arrays}) with ordinality as k (${names.join(', ')}, query_number)
    join ${table} on ${[`${table}.${realm} = $1`, ...keyMatches].join(' and ')}`;
  return { one, many };
}

/** The newest records of a child resource, as the text of a JSON array; null if there are none. */
function includedColumn(parent: Resource, child: Resource): string {
  const [, ...below] = keyColumns(parent);
  const newest = newestBelowText(child, postgresStatements(child).visible, [
    '$1',
    ...below.map((column) => `${parent.table}.${column}`),
  ]);
  return `(select json_agg(b order by b.created_at desc, b.id desc) from (${newest}) as b)::text`;
}

function decodeIncluding(resource: Resource, children: readonly Resource[], row: Row): RecordWithIncluded {
  const included = children.map((child, at): IncludedRecords => {
    const rows = JSON.parse((row[`included_${at}`] as string | null) ?? '[]') as Row[];
    delete row[`included_${at}`];
    return newestOf(child, rows.map(postgresStatements(child).decode));
  });
  return { record: postgresStatements(resource).decode(row), included };
}
