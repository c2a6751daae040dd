import { LIMITS } from '../../model/limits.ts';
import type { Admission } from '../admission.ts';
import { type QueuedWork, rejectExpired } from '../queued_work.ts';
import { postgresFault } from './connection.ts';
import { CONNECTIONS_BUSY } from './errors.ts';
import type { ConnectionPool } from './pool.ts';

type Row = Record<string, unknown>;

/** The values of a lookup: the realm and others. */
type LookupValues = readonly [realm: string, ...others: string[]];

/** The statements of one kind of lookup. */
export interface LookupStatements {
  /** Parameters: the values of a lookup. */
  readonly one: string;
  /**
   * Selects for several lookups of a realm, with `query_number`, the number of the lookup. Parameters: the realm, and for each
   * other value an array of those of all lookups. Undefined if the realm is the only value.
   */
  readonly many: string | undefined;
  /** An array as text. */
  readonly arrayOf: (values: readonly string[]) => string;
}

interface WaitingLookup<T> extends QueuedWork {
  readonly values: LookupValues;
  readonly resolve: (found: T | undefined) => void;
}

/** Waiting lookups of one realm, and how many statements are running. */
interface RealmQueue<T> {
  readonly realm: string;
  readonly waiting: WaitingLookup<T>[];
  inFlight: number;
}

/**
 * Batches lookups of one kind. Those of one realm that arrive in one turn of the event loop share a statement, as do those that
 * arrive while one is running. A single lookup runs at the end of its turn. Each resolves with its only row; undefined for none
 * or more than one.
 */
export function openBatchedLookups<T>(
  pool: ConnectionPool,
  admission: Admission,
  { one, many, arrayOf }: LookupStatements,
  decode: (row: Row) => T,
): (values: LookupValues) => Promise<T | undefined> {
  const queues = new Map<string, RealmQueue<T>>();
  const ready = new Set<RealmQueue<T>>();

  function flush(): void {
    for (const queue of ready) send(queue);
    ready.clear();
  }

  function send(queue: RealmQueue<T>): void {
    while (isDue(queue)) {
      const next = queue.waiting.splice(0, LIMITS.lookupsPerStatementMax);
      const sent = rejectExpired(next, CONNECTIONS_BUSY);
      if (sent.length < next.length) admission.giveUp(next.length - sent.length);
      if (sent.length === 0) continue;
      queue.inFlight += 1;
      run(queue.realm, sent).finally(() => {
        queue.inFlight -= 1;
        send(queue);
      });
    }
    if (queue.waiting.length === 0 && queue.inFlight === 0) queues.delete(queue.realm);
  }

  async function run(realm: string, sent: readonly WaitingLookup<T>[]): Promise<void> {
    try {
      const found = await select(realm, sent);
      admission.leave(sent.length);
      for (const [index, { resolve }] of sent.entries()) resolve(found[index]);
    } catch (error) {
      admission.giveUp(sent.length);
      const fault = postgresFault(error);
      for (const { reject } of sent) reject(fault);
    }
  }

  /** The record of each lookup. */
  async function select(
    realm: string,
    sent: readonly WaitingLookup<T>[],
  ): Promise<readonly (T | undefined)[]> {
    const [{ values }] = sent as readonly [WaitingLookup<T>];
    if (sent.length === 1 || many === undefined) {
      const { rows } = await pool.query(one, values);
      const [row] = rows;
      const found = row && rows.length === 1 ? decode(row) : undefined;
      return sent.map(() => found);
    }
    const [, ...others] = values;
    const arrays = others.map((_, at) => arrayOf(sent.map((each) => each.values[at + 1] as string)));
    const { rows } = await pool.query(many, [realm, ...arrays]);
    return rowsByNumber(rows, sent.length).map((row) => row && decode(row));
  }

  return (values) =>
    new Promise((resolve, reject) => {
      const [realm] = values;
      const queue = queues.getOrInsert(realm, { realm, waiting: [], inFlight: 0 });
      admission.enter();
      const deadline = performance.now() + LIMITS.storeWaitMsMax;
      queue.waiting.push({ values, resolve, reject, deadline });
      if (ready.size === 0) setImmediate(flush);
      ready.add(queue);
    });
}

/** One statement runs at a time, which is faster than two that compete; a full batch need not wait for it. */
function isDue({ waiting, inFlight }: RealmQueue<never>): boolean {
  if (waiting.length === 0 || inFlight === 0) return waiting.length > 0;
  return waiting.length >= LIMITS.lookupsPerStatementMax && inFlight < LIMITS.lookupStatementsMax;
}

/** For each lookup the row whose `query_number` is its number; undefined where there is none or more than one. */
function rowsByNumber(rows: readonly Row[], count: number): readonly (Row | undefined)[] {
  const found = new Array<Row | undefined>(count);
  const ambiguous = new Set<number>();
  for (const row of rows) {
    const at = (row.query_number as number) - 1;
    // An object that has lost a property is slower to read.
    row.query_number = undefined;
    if (found[at] !== undefined) ambiguous.add(at);
    found[at] = row;
  }
  for (const at of ambiguous) found[at] = undefined;
  return found;
}
