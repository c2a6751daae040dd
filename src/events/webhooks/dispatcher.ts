import { LIMITS } from '../../domain/limits.ts';
import type { Leases } from '../../jobs/leases.ts';
import type { DeliveryLag, Webhook } from './port.ts';
import type { DeliveryDeps } from './send_message.ts';
import { openSubscription, type Subscription } from './subscription.ts';

export interface DispatcherDeps extends DeliveryDeps {
  readonly leases: Leases;
  /** Called with all targets, disabled ones too. */
  readonly onList: (webhooks: readonly Webhook[]) => void;
}

/** Renewals of a lease within its term. */
const RENEWALS_PER_TERM = 4;
/** Time for messages in flight to finish when the process stops. */
const GRACE_MS = 2_000;

export interface Dispatcher {
  /** The lag of the targets that this process delivers to, with their IDs. */
  lag(): Promise<readonly (readonly [webhookId: string, lag: DeliveryLag])[]>;
  stop(): Promise<void>;
}

/**
 * Delivers to webhook targets until it is stopped. Of all processes of a database, only the one that holds the lease of a
 * target delivers to it.
 */
export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  const { leases, onError } = deps;
  const subscriptions = new Map<string, Subscription>();
  /** Subscriptions that are stopping. */
  const ending = new Map<string, Promise<void>>();
  let isStopping = false;
  const pollTimer = openPollTimer();
  let renewedNames = '';
  let renewedAt = Number.NEGATIVE_INFINITY;

  async function keepLeases(webhooks: readonly Webhook[]): Promise<void> {
    const wanted = [...webhooks.map(({ webhookId }) => webhookId), ...ending.keys()];
    const names = [...new Set(wanted.map(leaseName))];
    const isDue = performance.now() - renewedAt >= LIMITS.webhookLeaseMs / RENEWALS_PER_TERM;
    if (!isDue && names.join() === renewedNames) return;
    renewedAt = performance.now();
    renewedNames = names.join();
    await leases.keep(names);
  }

  /** Starts no further message of these subscriptions; other targets do not wait until they have ended. */
  function endSubscriptions(wanted: ReadonlySet<string>): void {
    for (const [webhookId, subscription] of subscriptions) {
      const isOurs = leases.holds(leaseName(webhookId)) && !subscription.isOver();
      if (wanted.has(webhookId) && isOurs) continue;
      subscriptions.delete(webhookId);
      // A disabled target may still receive messages in flight; a target of another process may not.
      const end = subscription.stop(isOurs ? GRACE_MS : 0).catch(onError);
      ending.set(
        webhookId,
        end.finally(() => ending.delete(webhookId)),
      );
    }
  }

  function subscriptionOf(webhook: Webhook): Subscription {
    const known = subscriptions.get(webhook.webhookId);
    if (known) return known;
    const name = leaseName(webhook.webhookId);
    const term = { lease: { name, holder: leases.holder }, isHeld: () => leases.holds(name) };
    const opened = openSubscription(deps, webhook, term);
    subscriptions.set(webhook.webhookId, opened);
    return opened;
  }

  async function pollOnce(): Promise<void> {
    const all = await deps.store.list();
    deps.onList(all);
    const webhooks = all.filter(({ disabledAt, isForged }) => disabledAt === undefined && !isForged);
    if (webhooks.length === 0 && subscriptions.size === 0 && renewedNames === '') return;
    // First, so that no message is sent to a disabled or deleted target.
    endSubscriptions(new Set(webhooks.map(({ webhookId }) => webhookId)));
    await keepLeases(webhooks);
    const isOurs = ({ webhookId }: Webhook) => leases.holds(leaseName(webhookId)) && !ending.has(webhookId);
    await Promise.all(webhooks.filter(isOurs).map((webhook) => subscriptionOf(webhook).poll(webhook)));
  }

  async function run(): Promise<void> {
    while (!isStopping) {
      await pollOnce().catch(onError);
      if (!isStopping) await pollTimer.begin();
    }
    const stopped = [...subscriptions.values()].map((each) => each.stop(GRACE_MS));
    await Promise.all([...stopped, ...ending.values()]);
    await leases.release().catch(onError);
  }

  const running = run();
  return {
    lag: () => Promise.all([...subscriptions].map(async ([id, each]) => [id, await each.lag()] as const)),
    async stop() {
      isStopping = true;
      pollTimer.end();
      await running;
    },
  };
}

/** Waits between two polls. Creates a new promise each time: awaits of a lasting promise would accumulate. */
function openPollTimer() {
  let wake: () => void = () => undefined;
  return {
    begin(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      setTimeout(resolve, LIMITS.webhookPollMs);
      return promise;
    },
    end: () => wake(),
  };
}

function leaseName(webhookId: string): string {
  return `webhook ${webhookId}`;
}
