import type { Store } from '../../directory/store.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type AnyRecord, type Key, keyColumns, type RecordOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { asFault } from './connection.ts';
import { statementsOf } from './dialect.ts';
import { numbered } from './places.ts';
import type { Pool } from './pool.ts';

interface Waiting {
  readonly key: Key;
  readonly resolve: (record: AnyRecord | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Lookups of one resource in one realm: what waits for them, and how many statements are under way. */
interface Batch {
  readonly lookup: Lookup;
  readonly realm: string;
  readonly waiting: Waiting[];
  underWay: number;
}

/**
 * Lookups by ID. Those that arrive in one turn of the event loop, of one resource in one realm, share a statement; so
 * do those that come while one is under way. One that is alone goes by itself, at once.
 */
export function openLookups(pool: Pool): Store['get'] {
  const lookups = new Map(RESOURCES.map((resource) => [resource, lookupOf(resource)]));
  const ready = new Set<Batch>();

  function flush(): void {
    for (const batch of ready) send(batch);
    ready.clear();
  }

  function send(batch: Batch): void {
    while (isDue(batch)) {
      const taken = batch.waiting.splice(0, LIMITS.lookupsTogetherMax);
      batch.underWay += 1;
      answer(batch, taken).finally(() => {
        batch.underWay -= 1;
        if (batch.waiting.length > 0) send(batch);
        else if (batch.underWay === 0) batch.lookup.batches.delete(batch.realm);
      });
    }
  }

  async function answer({ lookup }: Batch, taken: readonly Waiting[]): Promise<void> {
    try {
      const records = await (taken.length === 1 ? askOne : askMany)(lookup, taken);
      for (const [place, { resolve }] of taken.entries()) resolve(records[place]);
    } catch (error) {
      const fault = asFault(error);
      for (const { reject } of taken) reject(fault);
    }
  }

  async function askOne({ one, decode }: Lookup, [first]: readonly Waiting[]): Promise<Found> {
    const { rows } = await pool.ask(one, (first as Waiting).key);
    return rows.map(decode);
  }

  async function askMany(lookup: Lookup, taken: readonly Waiting[]): Promise<Found> {
    const { many, decode } = lookup;
    if (many === undefined) {
      // All that ask for a realm, in one realm, ask for the same record.
      const [record] = await askOne(lookup, taken);
      return taken.map(() => record);
    }
    const { rows } = await pool.ask(many, columnsOf(taken));
    const records = new Array<AnyRecord | undefined>(taken.length);
    for (const row of rows) {
      const place = row.place as number;
      delete row.place;
      records[place - 1] = decode(row);
    }
    return records;
  }

  return <R extends Resource>(resource: R, key: Key) =>
    new Promise<RecordOf<R> | undefined>((resolve, reject) => {
      const lookup = lookups.get(resource);
      if (!lookup) throw new Error(`${resource.name} has no table`);
      const [realm] = key;
      let batch = lookup.batches.get(realm);
      if (!batch) {
        batch = { lookup, realm, waiting: [], underWay: 0 };
        lookup.batches.set(realm, batch);
      }
      batch.waiting.push({ key, resolve: resolve as Waiting['resolve'], reject });
      if (ready.size === 0) setImmediate(flush);
      ready.add(batch);
    });
}

/** The records of so many lookups, in their order. */
type Found = readonly (AnyRecord | undefined)[];

/** One statement at a time: what comes meanwhile is the next one, and sooner than two that compete. Unless it is full. */
function isDue({ waiting, underWay }: Batch): boolean {
  if (waiting.length === 0 || underWay === 0) return waiting.length > 0;
  return waiting.length >= LIMITS.lookupsTogetherMax && underWay < LIMITS.lookupStatementsMax;
}

/** The realm, then for each column below it the values of all keys, as an array. */
function columnsOf(taken: readonly Waiting[]): readonly string[] {
  const key = (taken[0] as Waiting).key;
  return key.map((realm, depth) =>
    depth === 0 ? realm : `{${taken.map((waiting) => waiting.key[depth]).join()}}`,
  );
}

/** How records of a resource are looked up, and what is being looked up by realm. */
interface Lookup {
  /** Of one key. */
  readonly one: string;
  /** Of many keys in one realm: each row says in `place` which key it is of. Undefined where a realm has one alone. */
  readonly many: string | undefined;
  readonly decode: (row: Record<string, unknown>) => AnyRecord;
  readonly batches: Map<string, Batch>;
}

function lookupOf(resource: Resource): Lookup {
  const { table } = resource;
  const { select, visible, unlessPurged, decode } = statementsOf(resource);
  const single = { one: numbered(select).text, decode, batches: new Map<string, Batch>() };
  const [realm, ...below] = keyColumns(resource);
  if (below.length === 0) return { ...single, many: undefined };
  const arrays = below.map((_, at) => `$${at + 2}::uuid[]`).join(', ');
  const names = below.map((column) => `key_${column}`);
  const meets = below.map((column) => `${table}.${column} = k.key_${column}`);
  const many = `select ${visible.join(', ')}, k.place::integer as place
    from unnest(${arrays}) with ordinality as k (${names.join(', ')}, place)
    join ${table} on ${[`${table}.${realm} = $1`, ...meets].join(' and ')}${unlessPurged}`;
  return { ...single, many };
}
