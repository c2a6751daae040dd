import { Fault } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { DeadLetter, Delivery, RealmProgress, WebhookStore } from './port.ts';

/** Collects what became of messages to one target, so that however many are sent there is one commit now and then. */
export interface DeliveryLog {
  addProgress(progress: RealmProgress): void;
  addDelivery(delivery: Delivery): void;
  addDeadLetter(letter: DeadLetter): void;
  /** How many deliveries are not being stored yet. */
  size(): number;
  /** Resolves once everything added before is stored, or this process may store nothing any more. */
  stored(): Promise<void>;
  /** Whether another process has taken over, or the log was closed. */
  isClosed(): boolean;
  /** Drops what is not stored. */
  close(): void;
}

type Lease = Parameters<WebhookStore['saveResults']>[0];

interface UnsavedResults {
  /** Of a realm only the latest counts. */
  readonly progress: Map<Uuid, RealmProgress>;
  readonly deliveries: Delivery[];
  readonly deadLetters: DeadLetter[];
  readonly written: PromiseWithResolvers<void>;
}

/** After so many deliveries the table of deliveries is cut to its length. */
const DELIVERIES_PER_TRIM = 500;

export function openDeliveryLog(
  store: Pick<WebhookStore, 'saveResults' | 'trim'>,
  webhookId: string,
  lease: Lease,
): DeliveryLog {
  let batch = newBatch();
  /** What the batch before this one comes to. */
  let before = Promise.resolve();
  let storing: Promise<void> | undefined;
  let untrimmed = 0;
  let isOver = false;

  const isEmpty = () => batch.progress.size + batch.deliveries.length + batch.deadLetters.length === 0;

  async function storeBatch(): Promise<void> {
    const taken = batch;
    batch = newBatch();
    before = taken.written.promise;
    const { deliveries, deadLetters, written } = taken;
    try {
      const progress = [...taken.progress.values()];
      isOver ||= !(await store.saveResults(lease, { webhookId, progress, deliveries, deadLetters }));
    } catch (error) {
      if (!(error instanceof Fault)) {
        written.reject(error);
        throw error;
      }
      // The database is unavailable: the same again, with what was added since.
      batch = joined(taken, batch);
      return;
    }
    written.resolve();
    untrimmed += deliveries.length;
    if (untrimmed < DELIVERIES_PER_TRIM) return;
    untrimmed = 0;
    await store.trim(0);
  }

  async function storeAll(): Promise<void> {
    try {
      while (!isOver && !isEmpty()) {
        await Bun.sleep(LIMITS.webhookSaveMs);
        await storeBatch();
      }
    } finally {
      storing = undefined;
    }
    if (isOver) batch.written.resolve();
  }

  function begin(): void {
    storing ??= storeAll();
    // Reported to those who wait for `stored`.
    storing.catch(() => undefined);
  }

  return {
    addProgress(progress) {
      batch.progress.set(progress.realm, progress);
      begin();
    },
    addDelivery(delivery) {
      batch.deliveries.push(delivery);
      begin();
    },
    addDeadLetter(letter) {
      batch.deadLetters.push(letter);
      begin();
    },
    size: () => batch.deliveries.length,
    async stored() {
      if (isOver || isEmpty()) return before;
      begin();
      return batch.written.promise;
    },
    isClosed: () => isOver,
    close() {
      isOver = true;
    },
  };
}

function newBatch(): UnsavedResults {
  const written = Promise.withResolvers<void>();
  // There may be no one waiting for it.
  written.promise.catch(() => undefined);
  return { progress: new Map(), deliveries: [], deadLetters: [], written };
}

/** An earlier batch with a later one behind it. Both are written when the earlier one is. */
function joined(earlier: UnsavedResults, later: UnsavedResults): UnsavedResults {
  for (const each of later.progress.values()) earlier.progress.set(each.realm, each);
  earlier.deliveries.push(...later.deliveries);
  earlier.deadLetters.push(...later.deadLetters);
  later.written.resolve(earlier.written.promise);
  return earlier;
}
