import { Fault } from '../../model/fault.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Lease } from '../../sql/leases.ts';
import { openSerialRunner } from '../serial_runner.ts';
import { openAvailability } from './backoff.ts';
import { deliverRealm } from './deliver_realm.ts';
import { isListed, openRealmQueue } from './realm_queue.ts';
import { redeliverDeadLetter } from './redelivery.ts';
import type { DeliveryDeps, DeliveryTarget, UnsavedResult } from './send_message.ts';
import type { Webhook } from './webhook.ts';

type DeliveryLease = Pick<Lease, 'name' | 'holder'> & { isHeld(): boolean };

/** The slot of dead letters, which are redelivered one after the other. */
const DEAD_LETTER = 'dead letter';
/** Stored deliveries after which the table of deliveries is trimmed. */
const DELIVERIES_PER_TRIM = 500;
/** Pause after an error of this process, which would otherwise repeat at once. */
const PAUSE_AFTER_ERROR_MS = 5_000;

export type Subscription = ReturnType<typeof openSubscription>;

/** Delivers to one target: each realm in its order, several realms at once. */
export function openSubscription(deps: DeliveryDeps, first: Webhook, lease: DeliveryLease) {
  const { store, clock, onError } = deps;
  const { webhookId } = first;
  const ending = new AbortController();
  const availability = openAvailability(clock.monotonic);
  const results = openResults(deps, webhookId, lease, ending.signal);
  const running = new Map<string, Promise<void>>();
  let webhook = first;
  let isStopping = false;
  let pausedUntil = 0;
  const isActive = () => !isStopping && !results.isOver() && lease.isHeld();
  const target: DeliveryTarget = {
    deps,
    webhookId,
    availability,
    signal: ending.signal,
    webhook: () => webhook,
    maySend: (realm) => isActive() && isListed(webhook, realm),
    save: results.save,
  };
  let queue = openRealmQueue({ store, clock, running, webhook });

  const pause = (error: unknown): void => {
    pausedUntil = clock.monotonic() + PAUSE_AFTER_ERROR_MS;
    onError(error);
  };

  function run(name: string, work: Promise<void>): void {
    const done = work.catch(pause).then(() => {
      running.delete(name);
      // Not at once, so that work that ends without waiting leaves the event loop to others.
      setImmediate(poll);
    });
    running.set(name, done);
  }

  /** A realm that was not sent to its end, because of an error or the end of its turn, waits again. */
  async function deliver(realm: Uuid): Promise<void> {
    const hasMore = await deliverRealm(target, realm).catch((error) => {
      pause(error);
      return true;
    });
    if (hasMore) queue.add(realm);
  }

  async function beginDeadLetter(): Promise<void> {
    if (running.has(DEAD_LETTER)) return;
    const [deadLetter] = await store.pendingDeadLetters(webhookId, 1);
    if (deadLetter && target.maySend(deadLetter.realm)) {
      run(DEAD_LETTER, redeliverDeadLetter(target, deadLetter));
    }
  }

  const hasFreeSlot = () => running.size < LIMITS.webhookRealmsAtOnceMax;

  async function pollOnce(): Promise<void> {
    if (!isActive() || !hasFreeSlot() || clock.monotonic() < pausedUntil) return;
    await beginDeadLetter();
    const isAvailable = !availability.isSuspended();
    await queue.fill(isAvailable);
    while (hasFreeSlot()) {
      const realm = queue.take(isAvailable);
      if (realm === undefined) return;
      run(realm, deliver(realm));
    }
  }

  const poll = openSerialRunner(pollOnce, pause);
  return {
    /** Starts due deliveries. `current` is the state of the target, which is not disabled. */
    poll(current: Webhook): Promise<void> {
      if (current.revision !== webhook.revision) {
        availability.restore();
        queue = openRealmQueue({ store, clock, running, webhook: current });
      }
      webhook = current;
      return poll();
    },
    /** Whether another process delivers by now. */
    isOver: results.isOver,
    /** Ends after `graceMs` at the latest; messages in flight are then aborted, and the next process sends them again. */
    async stop(graceMs: number): Promise<void> {
      isStopping = true;
      await Promise.race([untilIdle(running), Bun.sleep(graceMs)]);
      ending.abort();
      await untilIdle(running).then(poll);
    },
  };
}

async function untilIdle(running: ReadonlyMap<string, Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.all(running.values());
}

/** Stores the results of messages, each in a commit. */
function openResults(deps: DeliveryDeps, webhookId: string, lease: DeliveryLease, signal: AbortSignal) {
  const { store } = deps;
  let isOver = false;
  let untrimmed = 0;

  async function afterSave({ delivery, progress, deadLetter }: UnsavedResult): Promise<void> {
    // A dead letter without progress is an older one whose redelivery failed.
    if (deadLetter && progress) deps.onDeadLetter(webhookId);
    if (!delivery) return;
    untrimmed += 1;
    if (untrimmed < DELIVERIES_PER_TRIM) return;
    untrimmed = 0;
    await store.trim(0).catch(deps.onError);
  }

  return {
    isOver: () => isOver,
    async save(result: UnsavedResult): Promise<boolean> {
      while (!isOver) {
        try {
          isOver = !(await store.saveResult(lease, { webhookId, ...result }));
          if (!isOver) await afterSave(result);
          return !isOver;
        } catch (error) {
          // The database is unavailable: a message that is sent again is received twice, so the result waits for it.
          if (!(error instanceof Fault) || signal.aborted) throw error;
          await Bun.sleep(LIMITS.webhookPollMs);
        }
      }
      return false;
    },
  };
}
