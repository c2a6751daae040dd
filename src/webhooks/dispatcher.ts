import { LIMITS } from '../domain/limits.ts';
import type { Leases } from '../leases.ts';
import type { TellerRooms } from './line.ts';
import type { Arrears, Webhook } from './port.ts';
import { openTeller, type Teller } from './teller.ts';

export interface DispatcherRooms extends TellerRooms {
  readonly leases: Leases;
  /** Which receivers there are. */
  readonly onList: (webhooks: readonly Webhook[]) => void;
}

/** A lease is renewed so often within its term. */
const RENEWALS_A_TERM = 4;
/** How long what is being sent may take when the process stops. */
const GRACE_MS = 2_000;

export interface Dispatcher {
  /** What the receivers are owed that this process tells, by their identifiers. */
  arrears(): Promise<readonly (readonly [webhookId: string, arrears: Arrears])[]>;
  stop(): Promise<void>;
}

/**
 * Tells receivers what happens, from now until it is stopped. Of all processes over a database one at a time tells a receiver:
 * the one that holds its lease.
 */
export function startDispatcher(rooms: DispatcherRooms): Dispatcher {
  const { store, leases, onTrouble } = rooms;
  const tellers = new Map<string, Teller>();
  /** Tellers of receivers that are told no more, by what is left of them. */
  const ending = new Map<string, Promise<void>>();
  let isStopping = false;
  const rest = openRest();
  let keptNames = '';
  let keptAt = Number.NEGATIVE_INFINITY;

  async function keepLeases(webhooks: readonly Webhook[]): Promise<void> {
    const names = [...new Set([...webhooks.map(leaseOf), ...[...ending.keys()].map(leaseName)])];
    const isDue = performance.now() - keptAt >= LIMITS.webhookLeaseMs / RENEWALS_A_TERM;
    if (!isDue && names.join() === keptNames) return;
    keptAt = performance.now();
    keptNames = names.join();
    await leases.keep(names);
  }

  /** What ends is told no more from here on; nobody waits until all of it has ended. */
  function endTellers(wanted: ReadonlySet<string>): void {
    for (const [webhookId, teller] of tellers) {
      const isOurs = leases.holds(leaseName(webhookId)) && !teller.isOver();
      if (wanted.has(webhookId) && isOurs) continue;
      tellers.delete(webhookId);
      // One that was disabled may end what it is at; one that another process has got may not.
      const end = teller.stop(isOurs ? GRACE_MS : 0).catch(onTrouble);
      ending.set(
        webhookId,
        end.finally(() => ending.delete(webhookId)),
      );
    }
  }

  function tellerOf(webhook: Webhook): Teller {
    const name = leaseOf(webhook);
    const known = tellers.get(webhook.webhookId);
    if (known) return known;
    const term = { lease: { name, holder: leases.holder }, isHeld: () => leases.holds(name) };
    const teller = openTeller(rooms, webhook, term);
    tellers.set(webhook.webhookId, teller);
    return teller;
  }

  async function round(): Promise<void> {
    const all = await store.list();
    rooms.onList(all);
    const webhooks = all.filter(({ disabledAt }) => disabledAt === undefined);
    if (webhooks.length === 0 && tellers.size === 0 && keptNames === '') return;
    // A receiver that was disabled or deleted is told no more, before anything else is waited for.
    endTellers(new Set(webhooks.map(({ webhookId }) => webhookId)));
    await keepLeases(webhooks);
    const isOurs = (webhook: Webhook) => leases.holds(leaseOf(webhook)) && !ending.has(webhook.webhookId);
    const ours = webhooks.filter(isOurs);
    await Promise.all(ours.map((webhook) => tellerOf(webhook).look(webhook)));
  }

  async function run(): Promise<void> {
    while (!isStopping) {
      await round().catch(onTrouble);
      if (!isStopping) await rest.begin();
    }
    const stopped = [...tellers.values()].map((teller) => teller.stop(GRACE_MS));
    await Promise.all([...stopped, ...ending.values()]);
    await leases.release().catch(onTrouble);
  }

  const running = run();
  return {
    arrears: () => Promise.all([...tellers].map(arrearsOf)),
    async stop() {
      isStopping = true;
      rest.end();
      await running;
    },
  };
}

/** The time between two rounds. A promise of its own each time: whatever waits for one that lasts is kept by it. */
function openRest() {
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

async function arrearsOf([webhookId, teller]: [string, Teller]): Promise<readonly [string, Arrears]> {
  return [webhookId, await teller.arrears()];
}

function leaseOf({ webhookId }: Pick<Webhook, 'webhookId'>): string {
  return leaseName(webhookId);
}

function leaseName(webhookId: string): string {
  return `webhook ${webhookId}`;
}
