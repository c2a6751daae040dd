import { LIMITS } from '../../domain/limits.ts';
import type { Admission } from '../admission.ts';
import { postgresFault } from './connection.ts';
import { type QueuedWork, rejectExpired } from './queued_work.ts';

type Row = Record<string, unknown>;

interface BatchedQuery<Q, A> extends QueuedWork {
  readonly query: Q;
  readonly resolve: (result: A) => void;
}

/** Waiting queries about one realm, and how many statements are running. */
interface RealmQueue<Q, A> {
  readonly realm: string;
  readonly waiting: BatchedQuery<Q, A>[];
  inFlight: number;
}

/**
 * Batches queries of one kind. Those about one realm that arrive in one turn of the event loop share a statement, as do
 * those that arrive while one is running. A single query runs at the end of its turn. `runTogether` runs queries in one
 * statement, and resolves with their results, in their order.
 */
export function openQueryBatches<Q, A>(
  admission: Admission,
  runTogether: (realm: string, queries: readonly Q[]) => Promise<readonly A[]>,
): (realm: string, query: Q) => Promise<A> {
  const queues = new Map<string, RealmQueue<Q, A>>();
  const ready = new Set<RealmQueue<Q, A>>();

  function flush(): void {
    for (const queue of ready) send(queue);
    ready.clear();
  }

  function send(queue: RealmQueue<Q, A>): void {
    while (isDue(queue)) {
      const next = queue.waiting.splice(0, LIMITS.lookupsPerStatementMax);
      const sent = rejectExpired(next);
      if (sent.length < next.length) admission.giveUp(next.length - sent.length);
      if (sent.length === 0) continue;
      queue.inFlight += 1;
      runQueries(queue.realm, sent).finally(() => {
        queue.inFlight -= 1;
        send(queue);
      });
    }
    if (queue.waiting.length === 0 && queue.inFlight === 0) queues.delete(queue.realm);
  }

  async function runQueries(realm: string, sent: readonly BatchedQuery<Q, A>[]): Promise<void> {
    try {
      const queries = sent.map(({ query }) => query);
      const results = await runTogether(realm, queries);
      admission.leave(sent.length);
      for (const [index, { resolve }] of sent.entries()) resolve(results[index] as A);
    } catch (error) {
      admission.giveUp(sent.length);
      const fault = postgresFault(error);
      for (const { reject } of sent) reject(fault);
    }
  }

  return (realm, query) =>
    new Promise<A>((resolve, reject) => {
      let queue = queues.get(realm);
      if (!queue) {
        queue = { realm, waiting: [], inFlight: 0 };
        queues.set(realm, queue);
      }
      admission.enter();
      const deadline = performance.now() + LIMITS.storeWaitMsMax;
      queue.waiting.push({ query, resolve, reject, deadline });
      if (ready.size === 0) setImmediate(flush);
      ready.add(queue);
    });
}

/** One statement runs at a time, which is faster than two that compete; a full batch need not wait for it. */
function isDue({ waiting, inFlight }: RealmQueue<unknown, never>): boolean {
  if (waiting.length === 0 || inFlight === 0) return waiting.length > 0;
  return waiting.length >= LIMITS.lookupsPerStatementMax && inFlight < LIMITS.lookupStatementsMax;
}

/** For each query the row whose `query_number` is its number; undefined where there is none or more than one. */
export function uniqueRowPerQuery(rows: readonly Row[], count: number): readonly (Row | undefined)[] {
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
