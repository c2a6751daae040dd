import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openTargetBackoff } from './backoff.ts';
import { deliverRealm } from './deliver_realm.ts';
import { openDeliveryLog } from './delivery_log.ts';
import type { DeliveryLag, RealmCursor, Webhook } from './port.ts';
import { openRealmQueue } from './realm_queue.ts';
import { redeliverDeadLetter } from './redelivery.ts';
import type { DeliveryDeps, DeliveryTarget } from './send_message.ts';

/** Delivers to one target: each realm in its order, several realms at once. */
export interface Subscription {
  /** Starts due deliveries. `webhook` is the current state of the target, which is not disabled. */
  poll(webhook: Webhook): Promise<void>;
  /** Whether another process delivers to this target by now. */
  isOver(): boolean;
  lag(): Promise<DeliveryLag>;
  /** Ends after `graceMs` at the latest; messages in flight are then aborted, and the next process sends them again. */
  stop(graceMs: number): Promise<void>;
}

interface LeaseTerm {
  readonly lease: { readonly name: string; readonly holder: string };
  readonly isHeld: () => boolean;
}

/** The slot of dead letters, which are redelivered one after the other. */
const DEAD_LETTER = 'dead letter';

export function openSubscription(deps: DeliveryDeps, first: Webhook, term: LeaseTerm): Subscription {
  const { store, clock, onError } = deps;
  const { webhookId } = first;
  const log = openDeliveryLog(store, webhookId, term.lease);
  const ending = new AbortController();
  const slots = openSlots(clock.monotonic, onError);
  /** Realms whose progress is stored; they return to the queue when it is not reading. */
  const finished: { readonly cursor: RealmCursor; readonly hasMore: boolean }[] = [];
  let webhook = first;
  let isStopping = false;
  const target: DeliveryTarget = {
    deps,
    webhookId,
    log,
    backoff: openTargetBackoff(clock.monotonic),
    sending: new Map(),
    signal: ending.signal,
    webhook: () => webhook,
    maySend: (realm) => !isStopping && term.isHeld() && !log.isClosed() && isListed(webhook, realm),
  };
  const queue = openRealmQueue(deps, target.webhook);
  async function deliver(cursor: RealmCursor): Promise<void> {
    let hasMore = true;
    try {
      hasMore = await deliverRealm(target, cursor);
    } finally {
      log
        .stored()
        .catch(onError)
        .finally(() => {
          finished.push({ cursor, hasMore });
          poll();
        });
    }
  }

  async function beginDeadLetter(): Promise<void> {
    if (slots.isFull() || slots.has(DEAD_LETTER)) return;
    const [deadLetter] = await store.pendingDeadLetters(webhookId, 1);
    if (!deadLetter || !target.maySend(deadLetter.realm)) return;
    slots.run(DEAD_LETTER, redeliverDeadLetter(target, deadLetter), poll);
  }

  async function pollOnce(): Promise<void> {
    if (isStopping) return;
    for (const { cursor, hasMore } of finished.splice(0)) queue.release(cursor, hasMore);
    await beginDeadLetter();
    await queue.fill();
    while (!slots.isFull() && !target.backoff.isActive()) {
      const cursor = queue.takeIf(({ realm }) => target.maySend(realm));
      if (!cursor) return;
      slots.run(cursor.realm, deliver(cursor), poll);
    }
  }

  const poll = openSerialRunner(pollOnce, slots.pause);
  return {
    poll(current) {
      if (current.revision !== webhook.revision) target.backoff.end();
      webhook = current;
      return poll();
    },
    isOver: () => log.isClosed(),
    lag: () => lagOf(target, queue.first()),
    async stop(graceMs) {
      isStopping = true;
      await Promise.race([slots.idle(), Bun.sleep(graceMs)]);
      ending.abort();
      await slots.idle().then(poll);
      await Promise.race([log.stored().catch(onError), Bun.sleep(graceMs + 2 * LIMITS.webhookSaveMs)]);
      log.close();
    },
  };
}

function isListed({ realms }: Webhook, realm: Uuid): boolean {
  return realms === '*' || realms.has(realm);
}

/** `next`: the first realm that waits for a slot. */
async function lagOf(
  { deps, webhookId, sending, webhook }: DeliveryTarget,
  next: RealmCursor | undefined,
): Promise<DeliveryLag> {
  const failed = await deps.store.lag(webhookId);
  const waiting = next ? await deps.changes(next.realm, next.seq, 1) : [];
  const begun = [...sending].filter(([realm]) => isListed(webhook(), realm)).map(([, at]) => at);
  const times = [failed.since ?? [], waiting.map(({ at }) => at), begun].flat();
  return { ...failed, since: times.length > 0 ? Math.min(...times) : undefined };
}

/** Pause after an error of this process, which would otherwise repeat at once. */
const PAUSE_AFTER_ERROR_MS = 5_000;

/** Runs deliveries concurrently, up to `webhookRealmsAtOnceMax`. */
function openSlots(monotonic: () => number, onError: (error: unknown) => void) {
  const running = new Map<string, Promise<void>>();
  let pausedUntil = 0;
  const pause = (error: unknown): void => {
    pausedUntil = monotonic() + PAUSE_AFTER_ERROR_MS;
    onError(error);
  };
  return {
    pause,
    /** Whether no delivery may start now. */
    isFull: () => running.size >= LIMITS.webhookRealmsAtOnceMax || monotonic() < pausedUntil,
    has: (name: string) => running.has(name),
    /** Runs work, and then `next` unless the work failed. */
    run(name: string, work: Promise<void>, next: () => unknown): void {
      const release = () => running.delete(name);
      running.set(
        name,
        work.finally(release).then(() => void next(), pause),
      );
    },
    async idle(): Promise<void> {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}

/** Runs one task at a time. All calls during a run share the next run. */
function openSerialRunner(
  runOnce: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let current = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= current.then(async () => {
      next = undefined;
      await runOnce().catch(onError);
    });
    current = next;
    return next;
  };
}
