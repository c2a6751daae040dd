import { Fault } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { DeadLetter, Delivery, RealmProgress, WebhookStore } from './port.ts';

/** Collects the results of deliveries to one target and stores them in batches, however many are sent. */
export interface DeliveryLog {
  addProgress(progress: RealmProgress): void;
  addDelivery(delivery: Delivery): void;
  addDeadLetter(deadLetter: DeadLetter): void;
  /** The number of deliveries that are not being stored yet. */
  size(): number;
  /** Resolves when everything added before is stored, or when this process may no longer store. */
  stored(): Promise<void>;
  /** Whether another process has taken over, or the log was closed. */
  isClosed(): boolean;
  /** Drops all results that are not stored. */
  close(): void;
}

type Lease = Parameters<WebhookStore['saveResults']>[0];

interface UnsavedResults {
  /** The latest progress of each realm. */
  readonly progress: Map<Uuid, RealmProgress>;
  readonly deliveries: Delivery[];
  readonly deadLetters: DeadLetter[];
  readonly written: PromiseWithResolvers<void>;
}

/** Stored deliveries after which the table of deliveries is trimmed. */
const DELIVERIES_PER_TRIM = 500;

export function openDeliveryLog(
  store: Pick<WebhookStore, 'saveResults' | 'trim'>,
  webhookId: string,
  lease: Lease,
): DeliveryLog {
  let batch = newBatch();
  /** Settles when the previous batch is stored. */
  let previous = Promise.resolve();
  let storing: Promise<void> | undefined;
  let untrimmed = 0;
  let isOver = false;

  const isEmpty = () => batch.progress.size + batch.deliveries.length + batch.deadLetters.length === 0;

  async function storeBatch(): Promise<void> {
    const taken = batch;
    batch = newBatch();
    previous = taken.written.promise;
    const { deliveries, deadLetters, written } = taken;
    try {
      const progress = [...taken.progress.values()];
      isOver ||= !(await store.saveResults(lease, { webhookId, progress, deliveries, deadLetters }));
    } catch (error) {
      if (!(error instanceof Fault)) {
        written.reject(error);
        throw error;
      }
      // The database is unavailable: store them again, together with newer results.
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
    // Callers of `stored` get the error.
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
    addDeadLetter(deadLetter) {
      batch.deadLetters.push(deadLetter);
      begin();
    },
    size: () => batch.deliveries.length,
    async stored() {
      if (isOver || isEmpty()) return previous;
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
  // Prevents an unhandled rejection if nothing waits for it.
  written.promise.catch(() => undefined);
  return { progress: new Map(), deliveries: [], deadLetters: [], written };
}

/** Appends a later batch to an earlier one. Both are written with the earlier one. */
function joined(earlier: UnsavedResults, later: UnsavedResults): UnsavedResults {
  for (const each of later.progress.values()) earlier.progress.set(each.realm, each);
  earlier.deliveries.push(...later.deliveries);
  earlier.deadLetters.push(...later.deadLetters);
  later.written.resolve(earlier.written.promise);
  return earlier;
}
