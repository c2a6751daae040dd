import { Fault } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { DeadLetter, Delivery, Progress, Settlement, WebhookStore } from './port.ts';

/**
 * What has become of messages to one receiver and is to be written down: gathered, so that however many are sent there is a
 * commit now and then.
 */
export interface Ledger {
  noteProgress(progress: Progress): void;
  noteDelivery(delivery: Delivery): void;
  noteLetter(letter: DeadLetter): void;
  /** How many deliveries wait to be written down. */
  size(): number;
  /** Resolves once all that was noted before is written down, or nobody may write it down any more. */
  settled(): Promise<void>;
  /** Whether another process has taken over, or nothing is to be written down any more. */
  isClosed(): boolean;
  /** Gives up what waits. */
  close(): void;
}

type Lease = Parameters<WebhookStore['settle']>[0];

/** So many deliveries later the log of deliveries is cut to its length. */
const TRIM_EACH = 500;

export function openLedger(
  store: Pick<WebhookStore, 'settle' | 'trim'>,
  webhookId: string,
  lease: Lease,
): Ledger {
  const gathering = openGathering(webhookId);
  /** Settled with what is gathered, and with what was taken last. */
  let gathered = openBatch();
  let taken = Promise.resolve();
  let settling: Promise<void> | undefined;
  let untrimmed = 0;
  let isOver = false;

  /** Answers whether it is written down; where the database is in trouble it waits for the next time. */
  async function write(settlement: Settlement): Promise<boolean> {
    try {
      isOver ||= !(await store.settle(lease, settlement));
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      gathering.putBack(settlement);
      return false;
    }
    await trimAfter(settlement.deliveries.length);
    return true;
  }

  async function settleOnce(): Promise<void> {
    const { promise, resolve, reject } = gathered;
    gathered = openBatch();
    taken = promise;
    try {
      const isWritten = await write(gathering.take());
      resolve(isWritten ? undefined : gathered.promise);
    } catch (error) {
      reject(error);
      throw error;
    }
  }

  async function trimAfter(count: number): Promise<void> {
    untrimmed += count;
    if (untrimmed < TRIM_EACH) return;
    untrimmed = 0;
    await store.trim(0);
  }

  async function settleAll(): Promise<void> {
    try {
      while (!isOver && !gathering.isEmpty()) {
        await Bun.sleep(LIMITS.webhookSettleMs);
        await settleOnce();
      }
    } finally {
      // At once: what is noted from here on begins anew.
      settling = undefined;
    }
    if (isOver) gathered.resolve();
  }

  function begin(): void {
    settling ??= settleAll();
    // Whoever waits for what it writes down hears of its failure.
    settling.catch(() => undefined);
  }

  const noting =
    <T>(note: (each: T) => void) =>
    (each: T): void => {
      note(each);
      begin();
    };

  return {
    noteProgress: noting(gathering.noteProgress),
    noteDelivery: noting(gathering.noteDelivery),
    noteLetter: noting(gathering.noteLetter),
    size: gathering.size,
    async settled() {
      if (isOver || gathering.isEmpty()) return taken;
      begin();
      return gathered.promise;
    },
    isClosed: () => isOver,
    close() {
      isOver = true;
    },
  };
}

/** What was noted and not taken yet. Of a realm the last place alone counts. */
function openGathering(webhookId: string) {
  const progress = new Map<Uuid, Progress>();
  let deliveries: Delivery[] = [];
  let deadLetters: DeadLetter[] = [];
  return {
    noteProgress: (each: Progress): unknown => progress.set(each.realm, each),
    noteDelivery: (each: Delivery): unknown => deliveries.push(each),
    noteLetter: (each: DeadLetter): unknown => deadLetters.push(each),
    size: () => deliveries.length,
    isEmpty: () => progress.size + deliveries.length + deadLetters.length === 0,
    take(): Settlement {
      const settlement = { webhookId, progress: [...progress.values()], deliveries, deadLetters };
      progress.clear();
      deliveries = [];
      deadLetters = [];
      return settlement;
    },
    putBack(settlement: Settlement): void {
      for (const each of settlement.progress) if (!progress.has(each.realm)) progress.set(each.realm, each);
      deliveries = [...settlement.deliveries, ...deliveries];
      deadLetters = [...settlement.deadLetters, ...deadLetters];
    },
  };
}

function openBatch(): PromiseWithResolvers<void> {
  const batch = Promise.withResolvers<void>();
  // Nobody may wait for it.
  batch.promise.catch(() => undefined);
  return batch;
}
