import type { LogStore } from './audit/port.ts';
import { actOf } from './domain/act.ts';
import { Fault } from './domain/fault.ts';
import { type Ambient, NIL_UUID, type Uuid } from './domain/id.ts';
import { LIMITS } from './domain/limits.ts';
import type { Leases } from './leases.ts';
import type { WebhookStore } from './webhooks/port.ts';

const DAY_MS = 86_400_000;
const LEASE = 'retention';

interface RetentionRooms {
  readonly log: Pick<LogStore, 'heads' | 'trim' | 'note'>;
  readonly webhooks: Pick<WebhookStore, 'trim'>;
  readonly ambient: Pick<Ambient, 'now'>;
  readonly days: number;
  /** Whether to go on. */
  readonly mayGoOn: () => boolean;
  /** Called between two commits. */
  readonly pause: () => Promise<void>;
}

/**
 * Removes changes, log entries, deliveries and dead letters that are older than so many days, a bounded number in each commit.
 * The newest entry of every log stays. What was removed of a log is told by that of the installation.
 */
export async function removeOld(rooms: RetentionRooms): Promise<void> {
  const { log, webhooks, ambient, days, mayGoOn, pause } = rooms;
  const before = ambient.now() - days * DAY_MS;

  async function removeAll(some: () => Promise<number>): Promise<number> {
    let removed = 0;
    while (mayGoOn()) {
      const count = await some();
      removed += count;
      if (count < LIMITS.cascadeRecordsMax) break;
      await pause();
    }
    return removed;
  }

  async function trimLog(which: Uuid): Promise<void> {
    const entries = await removeAll(() => log.trim(which, before));
    if (entries === 0) return;
    const realm = which === NIL_UUID ? {} : { realm: which };
    const detail = { entries, before: new Date(before).toISOString() };
    const asker = { actor: LEASE, address: undefined, requestId: undefined };
    await log.note([actOf('log.trimmed', { ...realm, detail }, { now: ambient.now, asker })]);
    await pause();
  }

  let after: Uuid | undefined;
  while (mayGoOn()) {
    const heads = await log.heads(after, LIMITS.pageRecordsMax);
    for (const head of heads) if (mayGoOn()) await trimLog(head.log);
    after = heads.at(-1)?.log;
    if (heads.length < LIMITS.pageRecordsMax) break;
  }
  await removeAll(() => webhooks.trim(before));
}

interface Schedule extends Omit<RetentionRooms, 'mayGoOn' | 'pause'> {
  readonly leases: Leases;
  readonly onTrouble: (error: unknown) => void;
}

/** Does so every hour, one process at a time, until it is stopped. It keeps no process alive. */
export function startRetention(
  { leases, onTrouble, ...rooms }: Schedule,
  everyMs: number = LIMITS.retentionEveryMs,
): { stop(): Promise<void> } {
  let isStopped = false;
  let removing: Promise<void> = Promise.resolve();

  async function removeOnce(): Promise<void> {
    try {
      const keep = () => leases.keep([LEASE]);
      await keep();
      const mayGoOn = () => !isStopped && leases.holds(LEASE);
      const pause = async () => {
        await Bun.sleep(LIMITS.retentionPauseMs);
        await keep();
      };
      if (mayGoOn()) await removeOld({ ...rooms, mayGoOn, pause });
      await leases.release();
    } catch (error) {
      // A database that is busy or in trouble says so to every request. What is left goes next time.
      if (!(error instanceof Fault)) onTrouble(error);
    }
  }

  const timer = setInterval(() => {
    removing = removing.then(removeOnce);
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await removing;
    },
  };
}
