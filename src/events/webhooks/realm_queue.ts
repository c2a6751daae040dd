import { type Clock, NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ClockPosition, ProgressStore, RealmCursor, Webhook } from './port.ts';

/**
 * Realms of one target that wait for a free slot, first in, first out. A realm is added when its clock has advanced, or when
 * a failed message is due. A sweep over all realms finds the rest: undelivered changes from before the process started or
 * the target was changed.
 */
export interface RealmQueue {
  /** Reads realms until there are as many as slots, none are left, or the time is up. Not to be called concurrently. */
  fill(): Promise<void>;
  /** Takes the first realm if it passes the test. */
  takeIf(matches: (cursor: RealmCursor) => boolean): RealmCursor | undefined;
  first(): RealmCursor | undefined;
  /** Returns a realm whose progress is stored. `hasMore`: it certainly has undelivered changes. */
  release(cursor: RealmCursor, hasMore: boolean): void;
}

interface QueueDeps {
  readonly store: Pick<ProgressStore, 'clockBounds' | 'movedRealms' | 'realmsAfter' | 'dueRealms'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
}

/** Adds realms that have undelivered changes. */
type Add = (cursors: readonly RealmCursor[]) => void;

const PAGE = LIMITS.webhookScanRealms;

export function openRealmQueue({ store, clock }: QueueDeps, webhook: () => Webhook): RealmQueue {
  const { webhookId } = webhook();
  let revision = webhook().revision;
  const { waiting, taken, add, release } = openWaiting(webhook);
  /** A failed message waits until it is due. */
  const addFresh: Add = (cursors) => add(cursors.filter(({ nextAt }) => nextAt === 0));
  const moved = openMovedReader(store, webhookId, addFresh);
  const sweep = openSweep({ store, clock }, webhookId, addFresh);

  /** A changed target may have new realms. */
  function restartIfChanged(): void {
    if (webhook().revision === revision) return;
    revision = webhook().revision;
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
      // Before the sweep, so that no clock advances unnoticed between the two.
      await moved.begin();
      await addDue();
      for (;;) {
        const isMovedRead = await moved.readPage();
        const isSwept = await sweep.readPage();
        if ((isMovedRead && isSwept) || isEnough() || clock.monotonic() >= until) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    takeIf(matches) {
      const [cursor] = waiting.values();
      if (!cursor || !matches(cursor)) return undefined;
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
  /** The heads of realms that were taken and not released: their stored progress is outdated. */
  const taken = new Map<Uuid, number>();
  /** Taken realms whose clock has advanced since. */
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
      // A realm that was removed from the target meanwhile would block the queue.
      if (isPending && cursor.nextAt === 0 && isListed(cursor.realm)) waiting.set(cursor.realm, cursor);
    },
  };
}

/** Returns whether nothing is left to read for now. */
type ReadPage = () => Promise<boolean>;

/** One scan over the clocks that advanced, in pages. */
interface ClockScan {
  after: ClockPosition;
  /** The bounds at its start: this scan ends at `ends`, and the next one starts at `begins`. */
  bounds?: { readonly begins: number; readonly ends: number };
}

const scanFrom = (moved: number): ClockScan => ({ after: { moved, realm: NIL_UUID } });

/** Reads recent writes. While a transaction is open, later clocks are read repeatedly. */
function openMovedReader(store: QueueDeps['store'], webhookId: string, add: Add) {
  let scan: ClockScan | undefined;
  const begin = async (): Promise<ClockScan> => {
    scan ??= scanFrom((await store.clockBounds()).begins);
    return scan;
  };
  const readPage: ReadPage = async () => {
    const current = await begin();
    // Before the rows: the next scan reads clocks that become visible between the two.
    const bounds = await store.clockBounds();
    current.bounds ??= bounds;
    const rows = await store.movedRealms(webhookId, current.after, bounds.ends, PAGE);
    add(rows);
    const last = rows[PAGE - 1];
    // A scan ends even if writes continue: the next one reads later clocks.
    if (last && last.moved < current.bounds.ends) current.after = last;
    else scan = scanFrom(current.bounds.begins);
    return last === undefined;
  };
  return {
    begin,
    readPage,
    restart() {
      scan = undefined;
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
    const rows = await store.realmsAfter(webhookId, after, PAGE);
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
