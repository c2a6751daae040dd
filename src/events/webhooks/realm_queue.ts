import { type Clock, NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ClockPosition, ProgressStore, RealmCursor, Webhook } from './port.ts';

/**
 * Realms of one target that wait for a free slot, first in, first out. A realm gets here because its clock moved, or because a
 * failed message is due again. A sweep over all realms finds the rest: undelivered changes from before the process began or
 * the target was changed, and clocks that release 0.1.0 moved without a sign of it.
 */
export interface RealmQueue {
  /** Reads on until there are as many as slots, nothing is left to read, or time is up. Not to be called concurrently. */
  fill(): Promise<void>;
  /** Takes the first one, or the first that passes no test: then it stays. */
  takeIf(isWanted: (cursor: RealmCursor) => boolean): RealmCursor | undefined;
  first(): RealmCursor | undefined;
  /** Gives back a realm whose progress is stored. `hasMore`: it has undelivered changes for sure. */
  release(cursor: RealmCursor, hasMore: boolean): void;
}

interface QueueDeps {
  readonly store: Pick<ProgressStore, 'clockBounds' | 'movedRealms' | 'realmsBehind' | 'dueRealms'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
}

/** Adds realms that have undelivered changes. */
type Add = (cursors: readonly RealmCursor[]) => void;

const PAGE = LIMITS.webhookScanRealms;

export function openRealmQueue({ store, clock }: QueueDeps, webhook: () => Webhook): RealmQueue {
  const { webhookId } = webhook();
  let seen = webhook().revision;
  const { waiting, taken, add, release } = openWaiting(webhook);
  /** A failed message waits until it is due. */
  const addFresh: Add = (cursors) => add(cursors.filter(({ nextAt }) => nextAt === 0));
  const moved = openMovedReader(store, webhookId, addFresh);
  const sweep = openSweep({ store, clock }, webhookId, addFresh);

  /** A change of the target may make realms its own that were skipped. */
  function restartIfChanged(): void {
    if (webhook().revision === seen) return;
    seen = webhook().revision;
    waiting.clear();
    moved.restart();
    sweep.restart();
  }

  async function addDue(): Promise<void> {
    const due = await store.dueRealms(webhookId, clock.now(), PAGE + taken.size);
    add(due.filter(({ realm }) => !taken.has(realm)));
  }

  return {
    async fill() {
      restartIfChanged();
      const until = clock.monotonic() + LIMITS.webhookScanMsMax;
      const isEnough = () => waiting.size >= LIMITS.webhookRealmsAtOnceMax;
      if (isEnough()) return;
      // Before the sweep: no clock moves unseen between the two.
      await moved.begin();
      await addDue();
      for (;;) {
        const isMovedRead = await moved.readPage();
        const isSwept = await sweep.readPage();
        if ((isMovedRead && isSwept) || isEnough() || clock.monotonic() >= until) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    takeIf(isWanted) {
      const [cursor] = waiting.values();
      if (!cursor || !isWanted(cursor)) return undefined;
      waiting.delete(cursor.realm);
      taken.set(cursor.realm, cursor.head);
      return cursor;
    },
    first: () => waiting.values().next().value,
    release,
  };
}

function openWaiting(webhook: () => Webhook) {
  const waiting = new Map<Uuid, RealmCursor>();
  /** The heads of realms that were taken and not released: the progress in a row about them is outdated. */
  const taken = new Map<Uuid, number>();
  /** Those of them whose clock has moved since. */
  const movedAgain = new Set<Uuid>();
  const isListed = (realm: Uuid): boolean => {
    const { realms } = webhook();
    return realms === '*' || realms.has(realm);
  };
  return {
    waiting,
    taken,
    add(cursors: readonly RealmCursor[]): void {
      for (const cursor of cursors) {
        const { realm, head, seq } = cursor;
        if (head <= seq || !isListed(realm)) continue;
        const takenHead = taken.get(realm);
        if (takenHead === undefined) waiting.set(realm, cursor);
        else if (head > takenHead) movedAgain.add(realm);
      }
    },
    release(cursor: RealmCursor, hasMore: boolean): void {
      taken.delete(cursor.realm);
      const isPending = movedAgain.delete(cursor.realm) || hasMore;
      // It may have been taken off the list meanwhile, and would be in the way of all others.
      if (isPending && cursor.nextAt === 0 && isListed(cursor.realm)) waiting.set(cursor.realm, cursor);
    },
  };
}

/** Answers whether there is nothing left to read for now. */
type ReadPage = () => Promise<boolean>;

/** One walk over the clocks that moved. A page may not reach its end: the next one continues there. */
interface Walk {
  after: ClockPosition;
  /** The bounds when the walk began: the next one begins at the first, and this one ends at the second. */
  bounds?: { readonly begins: number; readonly ends: number };
}

const walkFrom = (moved: number): Walk => ({ after: { moved, realm: NIL_UUID } });

/** What was written lately. While a transaction lasts, all that came after it is read again. */
function openMovedReader(store: QueueDeps['store'], webhookId: string, add: Add) {
  let walk: Walk | undefined;
  const begin = async (): Promise<Walk> => {
    walk ??= walkFrom((await store.clockBounds()).begins);
    return walk;
  };
  const readPage: ReadPage = async () => {
    const current = await begin();
    // Before the rows: what becomes visible between the two is read by the next walk.
    const bounds = await store.clockBounds();
    current.bounds ??= bounds;
    const rows = await store.movedRealms(webhookId, current.after, bounds.ends, PAGE);
    add(rows);
    const last = rows[PAGE - 1];
    // A walk ends also while others write: what becomes visible behind it is for the next one.
    if (last && last.moved < current.bounds.ends) current.after = last;
    else walk = walkFrom(current.bounds.begins);
    return last === undefined;
  };
  return {
    begin,
    readPage,
    restart() {
      walk = undefined;
    },
  };
}

/** All realms, at the start and every LIMITS.webhookSweepMs. */
function openSweep({ store, clock }: QueueDeps, webhookId: string, add: Add) {
  let after: Uuid | undefined = NIL_UUID;
  let dueAt = 0;
  const readPage: ReadPage = async () => {
    if (after === undefined && clock.monotonic() >= dueAt) after = NIL_UUID;
    if (after === undefined) return true;
    const rows = await store.realmsBehind(webhookId, after, PAGE);
    add(rows);
    after = rows[PAGE - 1]?.realm;
    if (after === undefined) dueAt = clock.monotonic() + LIMITS.webhookSweepMs;
    return after === undefined;
  };
  return {
    readPage,
    restart() {
      after = NIL_UUID;
    },
  };
}
