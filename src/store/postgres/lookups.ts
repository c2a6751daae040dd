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
  readonly resource: Resource;
  readonly realm: string;
  readonly waiting: Waiting[];
  underWay: number;
}

/**
 * Lookups by ID. Those that arrive in one turn of the event loop, of one resource in one realm, share a statement; so
 * do those that come while LIMITS.lookupStatementsMax of them are under way. One that is alone goes by itself, at once.
 */
export function openLookups(pool: Pool): Store['get'] {
  const texts = new Map(RESOURCES.map((resource) => [resource, textsOf(resource)]));
  const batches = new Map<string, Batch>();
  const ready = new Set<Batch>();

  function flush(): void {
    for (const batch of ready) send(batch);
    ready.clear();
  }

  function send(batch: Batch): void {
    while (batch.waiting.length > 0 && batch.underWay < LIMITS.lookupStatementsMax) {
      const taken = batch.waiting.splice(0, LIMITS.lookupsTogetherMax);
      batch.underWay += 1;
      answer(batch, taken).finally(() => {
        batch.underWay -= 1;
        if (batch.waiting.length > 0) send(batch);
        else if (batch.underWay === 0) batches.delete(nameOf(batch.resource, batch.realm));
      });
    }
  }

  async function answer({ resource }: Batch, taken: readonly Waiting[]): Promise<void> {
    const found = texts.get(resource);
    if (!found) throw new Error(`${resource.name} has no table`);
    const { decode } = statementsOf(resource);
    try {
      const [first] = taken;
      if (taken.length === 1 && first) {
        const { rows } = await pool.ask(found.one, first.key);
        const [row] = rows;
        first.resolve(row && decode(row));
        return;
      }
      const { rows } = await pool.ask(found.many, columnsOf(taken));
      const records = new Array<AnyRecord | undefined>(taken.length);
      for (const row of rows) {
        const place = row.place as number;
        delete row.place;
        records[place - 1] = decode(row);
      }
      for (const [place, { resolve }] of taken.entries()) resolve(records[place]);
    } catch (error) {
      const fault = asFault(error);
      for (const { reject } of taken) reject(fault);
    }
  }

  return <R extends Resource>(resource: R, key: Key) =>
    new Promise<RecordOf<R> | undefined>((resolve, reject) => {
      const name = nameOf(resource, key[0]);
      let batch = batches.get(name);
      if (!batch) {
        batch = { resource, realm: key[0], waiting: [], underWay: 0 };
        batches.set(name, batch);
      }
      batch.waiting.push({ key, resolve: resolve as Waiting['resolve'], reject });
      if (ready.size === 0) setImmediate(flush);
      ready.add(batch);
    });
}

function nameOf({ name }: Resource, realm: string): string {
  return `${name} ${realm}`;
}

/** The realm, then for each column below it the values of all keys, as an array. */
function columnsOf(taken: readonly Waiting[]): readonly string[] {
  const key = (taken[0] as Waiting).key;
  return key.map((realm, depth) =>
    depth === 0 ? realm : `{${taken.map((waiting) => waiting.key[depth]).join()}}`,
  );
}

/** The lookup of one key, and of many keys in one realm, each row of which says in `place` which key it is of. */
function textsOf(resource: Resource): { readonly one: string; readonly many: string } {
  const { table } = resource;
  const { select, visible, unlessPurged } = statementsOf(resource);
  const [realm, ...below] = keyColumns(resource);
  const arrays = below.map((_, at) => `$${at + 2}::uuid[]`).join(', ');
  const names = below.map((column) => `key_${column}`);
  const meets = below.map((column) => `${table}.${column} = k.key_${column}`);
  const many =
    below.length === 0
      ? numbered(select).text
      : `select ${visible.join(', ')}, k.place::integer as place
         from unnest(${arrays}) with ordinality as k (${names.join(', ')}, place)
         join ${table} on ${[`${table}.${realm} = $1`, ...meets].join(' and ')}${unlessPurged}`;
  return { one: numbered(select).text, many };
}
