import { type Clock, NIL_UUID, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { ClockPosition, DueRealms } from '../store/progress.ts';
import type { WebhookStore } from '../store/webhooks.ts';
import type { Webhook } from './webhook.ts';

interface QueueDeps {
  readonly store: Pick<WebhookStore, 'dueRealms'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly webhook: Pick<Webhook, 'webhookId' | 'realms'>;
  /** The realms that have a slot: they wait until they are free. */
  readonly running: Pick<ReadonlySet<string>, 'has'>;
}

/** A scan over the clocks of realms in the order in which they advanced, in pages. */
interface ClockScan {
  readonly after: ClockPosition;
  /** The bounds at its start: this scan ends at `ends`, and the next one starts at `begins`. */
  readonly bounds?: Pick<DueRealms, 'begins' | 'ends'>;
}

const scanFrom = (moved: number): ClockScan => ({ after: { moved, realm: NIL_UUID } });
/** Finds no clock, and ends where the next scan begins. */
const LATEST = scanFrom(Number.MAX_SAFE_INTEGER);

/**
 * Realms of one target that wait for a free slot, first in, first out; a changed target, which may have new realms, gets a new
 * queue. One scan follows the clocks that advance. A sweep reads all clocks: at the start, and every LIMITS.webhookSweepMs,
 * because the clock of a realm may have another place than its time (docs/guides/citus.md#every-node-routes).
 */
export function openRealmQueue({ store, clock, webhook, running }: QueueDeps) {
  /** Whether each realm waits for a retry. */
  const waiting = new Map<Uuid, boolean>();
  let recent: ClockScan = LATEST;
  let sweep: ClockScan | undefined = scanFrom(0);
  let sweepDueAt = 0;

  async function read(after: ClockPosition | undefined): Promise<DueRealms> {
    const due = await store.dueRealms(webhook, clock.now(), after);
    for (const realm of due.retries) waiting.set(realm, true);
    for (const realm of due.moved) if (!waiting.has(realm)) waiting.set(realm, false);
    return due;
  }

  /** Reads a page of a scan. Returns where it continues; at its end, where the next one begins. */
  async function readPage({ after, bounds }: ClockScan): Promise<{ scan: ClockScan; isOver: boolean }> {
    const { last, ...page } = await read(after);
    const { begins, ends } = bounds ?? page;
    // A scan ends even if writes continue: the next one reads later clocks.
    const isOver = last === undefined || last.moved >= ends;
    return { scan: isOver ? scanFrom(begins) : { after: last, bounds: { begins, ends } }, isOver };
  }

  async function readSweep(): Promise<boolean> {
    if (sweep === undefined && clock.monotonic() >= sweepDueAt) sweep = scanFrom(0);
    if (sweep === undefined) return true;
    const { scan, isOver } = await readPage(sweep);
    sweep = isOver ? undefined : scan;
    if (isOver) sweepDueAt = clock.monotonic() + LIMITS.webhookSweepMs;
    return isOver;
  }

  return {
    /**
     * Adds realms whose failed message is due, and with `withNew` realms whose clock has advanced: until there are as many as
     * slots, none are left, or the time is up. Not to be called concurrently.
     */
    async fill(withNew: boolean): Promise<void> {
      const until = clock.monotonic() + LIMITS.webhookScanMsMax;
      const isEnough = () =>
        waiting.keys().reduce((count, realm) => count + (running.has(realm) ? 0 : 1), 0) >=
        LIMITS.webhookRealmsAtOnceMax;
      if (!withNew || isEnough()) return void (await read(undefined));
      for (;;) {
        // First, so that no clock advances unnoticed between the two.
        const { scan, isOver: isRecentRead } = await readPage(recent);
        recent = scan;
        const isSwept = await readSweep();
        if ((isSwept && isRecentRead) || isEnough() || clock.monotonic() >= until) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    /** Takes the first realm that has no slot, without `withNew` the first that retries. */
    take(withNew: boolean): Uuid | undefined {
      for (const [realm, isRetry] of waiting) {
        if (running.has(realm) || !(withNew || isRetry)) continue;
        waiting.delete(realm);
        return realm;
      }
      return undefined;
    },
    /** Adds a realm that certainly has undelivered changes, unless it was removed from the target. */
    add(realm: Uuid): void {
      if (isListed(webhook, realm)) waiting.set(realm, false);
    },
  };
}

export function isListed({ realms }: Pick<Webhook, 'realms'>, realm: Uuid): boolean {
  return realms === '*' || realms.has(realm);
}
