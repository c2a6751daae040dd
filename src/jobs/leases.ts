import type { Lease, LeaseStore } from '../directory/leases.ts';
import type { Clock } from '../domain/id.ts';

/** The leases of a process: jobs that one process at a time does for all of them. */
export interface Leases {
  readonly holder: string;
  readonly termMs: number;
  /** Whether this process holds a lease, so that no other process does. */
  holds(name: string): boolean;
  /**
   * Renews the leases of these names, acquires those that are free or expired, and releases all others. Must be called at least
   * every third of a term.
   */
  keep(names: readonly string[]): Promise<void>;
  release(): Promise<void>;
}

/**
 * Leases that need no synchronised clocks (docs/decisions/0020-feed-and-webhooks.md): a process takes over a lease after it has
 * seen no renewal for a whole term, by its own monotonic clock. The holder gives up a term after it began its last
 * renewal, which is earlier.
 */
export function openLeases(
  store: LeaseStore,
  termMs: number,
  { mintId, monotonic, now }: Pick<Clock, 'mintId' | 'monotonic' | 'now'>,
): Leases {
  const holder = mintId();
  /** When the last successful renewal of each own lease began. */
  const held = new Map<string, number>();
  /** The leases of other processes, and since when each has not been renewed. */
  const watched = new Map<string, { readonly lease: Lease; readonly since: number }>();

  const holds = (name: string): boolean =>
    monotonic() - (held.get(name) ?? Number.NEGATIVE_INFINITY) < termMs;

  async function renew(names: readonly string[]): Promise<void> {
    const mine = names.filter((name) => held.has(name));
    if (mine.length === 0) return;
    const renewedAt = monotonic();
    const renewed = new Set(await store.renew(holder, mine, now() + termMs));
    for (const name of mine) {
      if (renewed.has(name)) held.set(name, renewedAt);
      else held.delete(name);
    }
  }

  /** Whether a lease may be acquired: it is free, or was not renewed for a term. */
  function isExpired(name: string, lease: Lease | undefined): boolean {
    if (!lease) return true;
    const before = watched.get(name);
    if (!before || before.lease.holder !== lease.holder || before.lease.until !== lease.until) {
      watched.set(name, { lease, since: monotonic() });
      return false;
    }
    return monotonic() - before.since >= termMs;
  }

  async function releaseLeases(names: readonly string[]): Promise<void> {
    for (const name of names) held.delete(name);
    for (const name of names) await store.release(name, holder);
  }

  return {
    holder,
    termMs,
    holds,
    async keep(names) {
      await releaseLeases([...held.keys()].filter((name) => !names.includes(name)));
      for (const name of watched.keys()) if (!names.includes(name)) watched.delete(name);
      // A lease that is lost by this renewal is acquired again by the next call at the earliest: the caller sees the loss.
      const missing = names.filter((name) => !held.has(name));
      await renew(names);
      if (missing.length === 0) return;
      const stored = new Map((await store.list()).map((lease) => [lease.name, lease]));
      for (const name of missing) {
        const current = stored.get(name);
        if (!isExpired(name, current)) continue;
        const begun = monotonic();
        if (!(await store.replace({ name, holder, until: now() + termMs }, current))) continue;
        held.set(name, begun);
        watched.delete(name);
      }
    },
    release: () => releaseLeases([...held.keys()]),
  };
}
