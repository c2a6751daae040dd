import { LIMITS } from '../../domain/limits.ts';
import type { Admission } from '../admission.ts';
import { postgresFault } from './connection.ts';
import { type QueuedWork, rejectExpired } from './queued_work.ts';

type Row = Record<string, unknown>;

/** Asks questions about one realm with one statement. Resolves with their answers, in their order. */
type QueryTogether<Q, A> = (realm: string, questions: readonly Q[]) => Promise<readonly A[]>;

interface BatchedQuery<Q, A> extends QueuedWork {
  readonly question: Q;
  readonly resolve: (answer: A) => void;
}

/** Questions about one realm: those that wait, and how many statements are under way. */
interface RealmQueue<Q, A> {
  readonly realm: string;
  readonly waiting: BatchedQuery<Q, A>[];
  underWay: number;
}

/**
 * Questions of one kind. Those that arrive in one turn of the event loop, about one realm, share a statement; so do those
 * that come while one is under way. One that is alone goes by itself, at once.
 */
export function openQueryBatches<Q, A>(
  gate: Admission,
  ask: QueryTogether<Q, A>,
): (realm: string, question: Q) => Promise<A> {
  const batches = new Map<string, RealmQueue<Q, A>>();
  const ready = new Set<RealmQueue<Q, A>>();

  function flush(): void {
    for (const batch of ready) send(batch);
    ready.clear();
  }

  function send(batch: RealmQueue<Q, A>): void {
    while (isDue(batch)) {
      const next = batch.waiting.splice(0, LIMITS.lookupsPerStatementMax);
      const taken = rejectExpired(next);
      if (taken.length < next.length) gate.giveUp(next.length - taken.length);
      if (taken.length === 0) continue;
      batch.underWay += 1;
      answer(batch.realm, taken).finally(() => {
        batch.underWay -= 1;
        send(batch);
      });
    }
    if (batch.waiting.length === 0 && batch.underWay === 0) batches.delete(batch.realm);
  }

  async function answer(realm: string, taken: readonly BatchedQuery<Q, A>[]): Promise<void> {
    try {
      const questions = taken.map(({ question }) => question);
      const answers = await ask(realm, questions);
      gate.leave(taken.length);
      for (const [place, { resolve }] of taken.entries()) resolve(answers[place] as A);
    } catch (error) {
      gate.giveUp(taken.length);
      const fault = postgresFault(error);
      for (const { reject } of taken) reject(fault);
    }
  }

  return (realm, question) =>
    new Promise<A>((resolve, reject) => {
      let batch = batches.get(realm);
      if (!batch) {
        batch = { realm, waiting: [], underWay: 0 };
        batches.set(realm, batch);
      }
      gate.enter();
      const deadline = performance.now() + LIMITS.storeWaitMsMax;
      batch.waiting.push({ question, resolve, reject, deadline });
      if (ready.size === 0) setImmediate(flush);
      ready.add(batch);
    });
}

/** One statement at a time: what comes meanwhile is the next one, and sooner than two that compete. Unless it is full. */
function isDue({ waiting, underWay }: RealmQueue<unknown, never>): boolean {
  if (waiting.length === 0 || underWay === 0) return waiting.length > 0;
  return waiting.length >= LIMITS.lookupsPerStatementMax && underWay < LIMITS.lookupStatementsMax;
}

/** For each of so many questions the row that says in `place` that it is of that one, and no other row says so. */
export function uniqueRowPerQuery(rows: readonly Row[], count: number): readonly (Row | undefined)[] {
  const found = new Array<Row | undefined>(count);
  const twice = new Set<number>();
  for (const row of rows) {
    const at = (row.place as number) - 1;
    delete row.place;
    if (found[at] !== undefined) twice.add(at);
    found[at] = row;
  }
  for (const at of twice) found[at] = undefined;
  return found;
}
