import { LIMITS } from '../../model/limits.ts';
import type { JobLease } from '../../sql/job_leases.ts';
import type { DeliveryDeps } from './send_message.ts';
import { openSubscription, type Subscription } from './subscription.ts';
import type { Webhook } from './webhook.ts';

interface DispatcherDeps extends DeliveryDeps {
  readonly lease: JobLease;
  /** Called with all targets, disabled ones too. */
  readonly onList: (webhooks: readonly Webhook[]) => void;
}

/** Renewals of a lease within its term. */
const RENEWALS_PER_TERM = 4;
/** Time for messages in flight to finish when the process stops. */
const GRACE_MS = 2_000;

/** Delivers to webhook targets until it is stopped. Of all processes of a database, only the one that holds the lease delivers. */
export function startDispatcher(deps: DispatcherDeps) {
  const { lease, onError } = deps;
  const subscriptions = new Map<string, Subscription>();
  /** Subscriptions that are stopping. */
  const ending = new Map<string, Promise<void>>();
  let isStopping = false;
  let isLeaseKept = false;
  let renewedAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;

  async function keepLease(isNeeded: boolean): Promise<void> {
    const isDue = performance.now() - renewedAt >= LIMITS.webhookLeaseMs / RENEWALS_PER_TERM;
    if (isNeeded === isLeaseKept && !(isNeeded && isDue)) return;
    renewedAt = performance.now();
    isLeaseKept = isNeeded;
    await (isNeeded ? lease.keep() : lease.release());
  }

  /** Other targets do not wait until the subscription has ended. */
  function end(webhookId: string, subscription: Subscription, graceMs: number): void {
    subscriptions.delete(webhookId);
    const ended = subscription.stop(graceMs).catch(onError);
    ending.set(
      webhookId,
      ended.finally(() => ending.delete(webhookId)),
    );
  }

  async function pollOnce(): Promise<void> {
    const all = await deps.store.list();
    deps.onList(all);
    const webhooks = all.filter(isDelivered);
    const wanted = new Set(webhooks.map(({ webhookId }) => webhookId));
    // First, so that no message is sent to a disabled or deleted target.
    for (const [webhookId, subscription] of subscriptions) {
      const isOurs = lease.isHeld() && !subscription.isOver();
      // A disabled target may still receive messages in flight; a target of another process may not.
      if (!isOurs || !wanted.has(webhookId)) end(webhookId, subscription, isOurs ? GRACE_MS : 0);
    }
    await keepLease(webhooks.length + ending.size > 0);
    if (!lease.isHeld()) return;
    const ours = webhooks.filter(({ webhookId }) => !ending.has(webhookId));
    const polls = ours.map((webhook) => {
      const subscription = subscriptions.get(webhook.webhookId) ?? openSubscription(deps, webhook, lease);
      subscriptions.set(webhook.webhookId, subscription);
      return subscription.poll(webhook);
    });
    await Promise.all(polls);
  }

  async function poll(): Promise<void> {
    await pollOnce().catch(onError);
    if (isStopping) return;
    timer = setTimeout(() => {
      polling = poll();
    }, LIMITS.webhookPollMs);
  }

  let polling = poll();
  return {
    /** Whether this process delivers. */
    isActive: lease.isHeld,
    async stop(): Promise<void> {
      isStopping = true;
      clearTimeout(timer);
      await polling;
      for (const [webhookId, subscription] of subscriptions) end(webhookId, subscription, GRACE_MS);
      await Promise.all(ending.values());
      await lease.release().catch(onError);
    },
  };
}

export function isDelivered({ disabledAt, isForged }: Webhook): boolean {
  return disabledAt === undefined && !isForged;
}
