import type { Store } from '../../directory/store.ts';
import { type AnyRecord, type Key, keyColumns, type RecordOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import type { Admission } from '../admission.ts';
import { postgresStatements } from './dialect.ts';
import { numberParameters } from './parameters.ts';
import type { ConnectionPool } from './pool.ts';
import { openQueryBatches, uniqueRowPerQuery } from './query_batches.ts';

/** Lookups by ID: those of one resource in one realm travel together. */
export function openLookups(pool: ConnectionPool, gate: Admission): Store['get'] {
  const lookups = new Map(RESOURCES.map((resource) => [resource, lookupOf(resource, pool, gate)]));
  return <R extends Resource>(resource: R, key: Key) => {
    const lookup = lookups.get(resource);
    if (!lookup) throw new Error(`${resource.name} has no table`);
    return lookup(key[0], key) as Promise<RecordOf<R> | undefined>;
  };
}

function lookupOf(resource: Resource, pool: ConnectionPool, gate: Admission) {
  const { select, decode } = postgresStatements(resource);
  const one = numberParameters(select).text;
  const many = textOfMany(resource);

  async function askOne(key: Key): Promise<AnyRecord | undefined> {
    const [row] = (await pool.query(one, key)).rows;
    return row && decode(row);
  }

  return openQueryBatches<Key, AnyRecord | undefined>(gate, async (realm, keys) => {
    const [key] = keys as readonly [Key];
    if (keys.length === 1) return [await askOne(key)];
    if (many === undefined) {
      // All that ask for a realm, in one realm, ask for the same record.
      const record = await askOne(key);
      return keys.map(() => record);
    }
    const { rows } = await pool.query(many, [realm, ...columnsOf(keys)]);
    return uniqueRowPerQuery(rows, keys.length).map((row) => row && decode(row));
  });
}

/** For each column below the realm the values of all keys, as an array. */
function columnsOf(keys: readonly Key[]): readonly string[] {
  const [, ...below] = keys[0] as Key;
  return below.map((_, at) => `{${keys.map((key) => key[at + 1]).join()}}`);
}

/** Of many keys in one realm: each row says in `place` which key it is of. Undefined where a realm has one alone. */
function textOfMany(resource: Resource): string | undefined {
  const { table } = resource;
  const { visible, unlessPurged } = postgresStatements(resource);
  const [realm, ...below] = keyColumns(resource);
  if (below.length === 0) return undefined;
  const arrays = below.map((_, at) => `$${at + 2}::uuid[]`).join(', ');
  const names = below.map((column) => `key_${column}`);
  const meets = below.map((column) => `${table}.${column} = k.key_${column}`);
  return `select ${visible.join(', ')}, k.place::integer as place
    from unnest(${arrays}) with ordinality as k (${names.join(', ')}, place)
    join ${table} on ${[`${table}.${realm} = $1`, ...meets].join(' and ')}${unlessPurged}`;
}
