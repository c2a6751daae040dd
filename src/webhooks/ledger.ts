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
  const progress = new Map<Uuid, Progress>();
  let deliveries: Delivery[] = [];
  let deadLetters: DeadLetter[] = [];
  let settling: Promise<void> | undefined;
  let untrimmed = 0;
  let isOver = false;

  function take(): Settlement {
    const taken = { webhookId, progress: [...progress.values()], deliveries, deadLetters };
    progress.clear();
    deliveries = [];
    deadLetters = [];
    return taken;
  }

  function putBack(taken: Settlement): void {
    for (const each of taken.progress) if (!progress.has(each.realm)) progress.set(each.realm, each);
    deliveries = [...taken.deliveries, ...deliveries];
    deadLetters = [...taken.deadLetters, ...deadLetters];
  }

  /** Writes down what was noted; where the database is in trouble it waits for the next time. */
  async function settleOnce(): Promise<void> {
    const taken = take();
    try {
      isOver ||= !(await store.settle(lease, taken));
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      putBack(taken);
      return;
    }
    await trimAfter(taken.deliveries.length);
  }

  async function trimAfter(count: number): Promise<void> {
    untrimmed += count;
    if (untrimmed < TRIM_EACH) return;
    untrimmed = 0;
    await store.trim(0);
  }

  async function settleAll(): Promise<void> {
    while (!isOver && progress.size + deliveries.length + deadLetters.length > 0) {
      await Bun.sleep(LIMITS.webhookSettleMs);
      await settleOnce();
    }
  }

  function begin(): void {
    settling ??= settleAll().finally(() => {
      settling = undefined;
    });
    // Whoever waits for it hears of its failure.
    settling.catch(() => undefined);
  }

  return {
    noteProgress(each) {
      progress.set(each.realm, each);
      begin();
    },
    noteDelivery(each) {
      deliveries.push(each);
      begin();
    },
    noteLetter(each) {
      deadLetters.push(each);
      begin();
    },
    size: () => deliveries.length,
    async settled() {
      while (settling) await settling;
    },
    isClosed: () => isOver,
    close() {
      isOver = true;
    },
  };
}
