import type { AnyRecord, Key, RecordOf, Resource } from '../../../model/resource.ts';
import { keyColumns } from '../../../model/resource.ts';
import { RESOURCES } from '../../../model/resources.ts';
import type { IncludedRecords, RecordWithIncluded, Store } from '../../../model/store.ts';
import type { Admission } from '../../../sql/admission.ts';
import type { ConnectionPool } from '../../../sql/postgres/pool.ts';
import { type LookupStatements, openBatchedLookups } from '../../../sql/postgres/query_batches.ts';
import { newestBelowText, newestOf } from '../lists/newest_below.ts';
import { postgresStatements } from './dialect.ts';

type Row = Record<string, unknown>;

type Lookup<T> = (key: Key) => Promise<T | undefined>;

/** Lookups by ID. Those of one resource in one realm that include the same child resources share a statement. */
export function openLookups(pool: ConnectionPool, admission: Admission): Pick<Store, 'get' | 'getIncluding'> {
  const lookupOf = <T>(statements: LookupStatements, decode: (row: Row) => T): Lookup<T> =>
    openBatchedLookups(pool, admission, statements, decode);
  const lookups = new Map(
    RESOURCES.map((resource) => {
      const { decode } = postgresStatements(resource);
      return [resource, lookupOf<AnyRecord>(lookupStatements(resource, []), decode)];
    }),
  );
  const including = new Map<string, Lookup<RecordWithIncluded>>();

  function lookupIncluding(resource: Resource, children: readonly Resource[]): Lookup<RecordWithIncluded> {
    const name = [resource, ...children].map((each) => each.name).join();
    return including.getOrInsertComputed(name, () =>
      lookupOf(lookupStatements(resource, children), (row) => decodeIncluding(resource, children, row)),
    );
  }

  return {
    get: <R extends Resource>(resource: R, key: Key) => {
      const lookup = lookups.get(resource);
      if (!lookup) throw new Error(`${resource.name} has no table`);
      return lookup(key) as Promise<RecordOf<R> | undefined>;
    },
    getIncluding: (resource, key, children) => lookupIncluding(resource, children)(key),
  };
}

/** The statements of lookups that include records of child resources. Each names the realm of every table that it reads. */
function lookupStatements(resource: Resource, children: readonly Resource[]): LookupStatements {
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
  const arrayOf = (ids: readonly string[]) => `{${ids.join()}}`;
  if (below.length === 0) return { one, many: undefined, arrayOf };
  const arrays = below.map((_, at) => `$${at + 2}::uuid[]`).join(', ');
  const names = below.map((column) => `key_${column}`);
  const keyMatches = below.map((column) => `${table}.${column} = k.key_${column}`);
  const many = `select ${selected}, k.query_number::integer as query_number
    from unnest(${arrays}) with ordinality as k (${names.join(', ')}, query_number)
    join ${table} on ${[`${table}.${realm} = $1`, ...keyMatches].join(' and ')}`;
  return { one, many, arrayOf };
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
