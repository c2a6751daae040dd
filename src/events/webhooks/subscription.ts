import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { deliverRealm } from './deliver_realm.ts';
import { openDeliveryLog } from './delivery_log.ts';
import type { DeliveryLag, RealmCursor, Webhook } from './port.ts';
import { openRealmQueue } from './realm_queue.ts';
import { redeliverDeadLetter } from './redelivery.ts';
import type { DeliveryDeps, DeliveryTarget } from './send_message.ts';

/** Delivers to one target: each realm in its order, some realms at once. */
export interface Subscription {
  /** Looks for what is to be delivered. The target may have been changed since. */
  poll(webhook: Webhook): Promise<void>;
  /** Whether another process delivers to this target by now. */
  isOver(): boolean;
  lag(): Promise<DeliveryLag>;
  /** Ends after `graceMs` at the latest; messages on their way by then are broken off, and sent again by the next process. */
  stop(graceMs: number): Promise<void>;
}

interface LeaseTerm {
  readonly lease: { readonly name: string; readonly holder: string };
  readonly isHeld: () => boolean;
}

/** The slot of dead letters, which are sent again one after the other. */
const DEAD_LETTER = 'dead letter';

export function openSubscription(deps: DeliveryDeps, first: Webhook, term: LeaseTerm): Subscription {
  const { store, clock, onError } = deps;
  const { webhookId } = first;
  const log = openDeliveryLog(store, webhookId, term.lease);
  const ending = new AbortController();
  const slots = openSlots(clock.monotonic, onError);
  /** Realms whose progress is stored, until the queue gets them back: never while it reads. */
  const ended: { readonly cursor: RealmCursor; readonly hasMore: boolean }[] = [];
  let webhook = first;
  let isStopping = false;
  const target: DeliveryTarget = {
    deps,
    webhookId,
    log,
    sending: new Map(),
    signal: ending.signal,
    webhook: () => webhook,
    maySend: (realm) =>
      !isStopping &&
      term.isHeld() &&
      !log.isClosed() &&
      webhook.disabledAt === undefined &&
      isListed(webhook, realm),
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
          ended.push({ cursor, hasMore });
          look();
        });
    }
  }

  async function beginDeadLetter(): Promise<void> {
    if (slots.isFull() || slots.has(DEAD_LETTER)) return;
    const [letter] = await store.pendingDeadLetters(webhookId, 1);
    if (!letter || !target.maySend(letter.realm)) return;
    slots.run(DEAD_LETTER, redeliverDeadLetter(target, letter), look);
  }

  async function pollOnce(): Promise<void> {
    if (isStopping) return;
    for (const { cursor, hasMore } of ended.splice(0)) queue.release(cursor, hasMore);
    await beginDeadLetter();
    await queue.fill();
    while (!slots.isFull()) {
      const cursor = queue.takeIf(({ realm }) => target.maySend(realm));
      if (!cursor) return;
      slots.run(cursor.realm, deliver(cursor), look);
    }
  }

  const look = openSerialRunner(pollOnce, slots.pause);
  return {
    poll(current) {
      webhook = current;
      return look();
    },
    isOver: () => log.isClosed(),
    lag: () => lagOf(target, queue.first()),
    async stop(graceMs) {
      isStopping = true;
      await Promise.race([slots.idle(), Bun.sleep(graceMs)]);
      ending.abort();
      await slots.idle().then(look);
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

/** An error of this process would be there again at once. */
const PAUSE_AFTER_ERROR_MS = 5_000;

/** What is sent at once. */
function openSlots(monotonic: () => number, onTrouble: (error: unknown) => void) {
  const running = new Map<string, Promise<void>>();
  let pausedUntil = 0;
  const pause = (error: unknown): void => {
    pausedUntil = monotonic() + PAUSE_AFTER_ERROR_MS;
    onTrouble(error);
  };
  return {
    pause,
    /** Whether nothing is to be begun for now. */
    isFull: () => running.size >= LIMITS.webhookRealmsAtOnceMax || monotonic() < pausedUntil,
    has: (name: string) => running.has(name),
    /** Runs work until it ends; then what is next, unless it failed. */
    run(name: string, work: Promise<void>, next: () => unknown): void {
      const leave = () => running.delete(name);
      running.set(
        name,
        work.finally(leave).then(() => void next(), pause),
      );
    },
    async idle(): Promise<void> {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}

/** Runs one look at a time. All calls during a look share the one that follows it. */
function openSerialRunner(
  lookOnce: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let current = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= current.then(async () => {
      next = undefined;
      await lookOnce().catch(onError);
    });
    current = next;
    return next;
  };
}
