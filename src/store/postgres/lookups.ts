import type { Store } from '../../directory/store.ts';
import { type AnyRecord, type Key, keyColumns, type RecordOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import type { Admission } from '../admission.ts';
import { postgresStatements } from './dialect.ts';
import { numberParameters } from './parameters.ts';
import type { ConnectionPool } from './pool.ts';
import { openQueryBatches, uniqueRowPerQuery } from './query_batches.ts';

/** Lookups by ID. Those of one resource in one realm share a statement. */
export function openLookups(pool: ConnectionPool, admission: Admission): Store['get'] {
  const lookups = new Map(RESOURCES.map((resource) => [resource, lookupOf(resource, pool, admission)]));
  return <R extends Resource>(resource: R, key: Key) => {
    const lookup = lookups.get(resource);
    if (!lookup) throw new Error(`${resource.name} has no table`);
    return lookup(key[0], key) as Promise<RecordOf<R> | undefined>;
  };
}

function lookupOf(resource: Resource, pool: ConnectionPool, admission: Admission) {
  const { select, decode } = postgresStatements(resource);
  const one = numberParameters(select).text;
  const many = selectManyStatement(resource);

  async function selectOne(key: Key): Promise<AnyRecord | undefined> {
    const [row] = (await pool.query(one, key)).rows;
    return row && decode(row);
  }

  return openQueryBatches<Key, AnyRecord | undefined>(admission, async (realm, keys) => {
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

/** One array literal for each key column below the realm, with the values of all keys. */
function keyColumnArrays(keys: readonly Key[]): readonly string[] {
  const [, ...below] = keys[0] as Key;
  return below.map((_, at) => `{${keys.map((key) => key[at + 1]).join()}}`);
}

/**
 * Selects many keys of one realm; `query_number` is the number of the key. Undefined for the realm itself, which has no
 * other key.
 */
function selectManyStatement(resource: Resource): string | undefined {
  const { table } = resource;
  const { visible, unlessPurged } = postgresStatements(resource);
  const [realm, ...below] = keyColumns(resource);
  if (below.length === 0) return undefined;
  const arrays = below.map((_, at) => `$${at + 2}::uuid[]`).join(', ');
  const names = below.map((column) => `key_${column}`);
  const keyMatches = below.map((column) => `${table}.${column} = k.key_${column}`);
  return `select ${visible.join(', ')}, k.query_number::integer as query_number
    from unnest(${arrays}) with ordinality as k (${names.join(', ')}, query_number)
    join ${table} on ${[`${table}.${realm} = $1`, ...keyMatches].join(' and ')}${unlessPurged}`;
}
