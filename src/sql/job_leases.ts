import type { Clock } from '../model/id.ts';
import type { Lease, LeaseStore } from './leases.ts';

export type JobLease = ReturnType<typeof openLease>;

/**
 * The lease of a job that one process at a time does for all of them. It needs no synchronised clocks
 * (docs/decisions/0020-feed-and-webhooks.md): a process takes over a lease after it has seen no renewal for a whole term, by
 * its own monotonic clock. The holder gives up a term after it began its last renewal, which is earlier.
 */
export function openLease(
  store: LeaseStore,
  name: string,
  termMs: number,
  { mintId, monotonic, now }: Pick<Clock, 'mintId' | 'monotonic' | 'now'>,
) {
  const holder = mintId();
  /** When the last successful renewal began. */
  let renewedAt: number | undefined;
  /** The lease of another process, and since when it has not been renewed. */
  let watched: { readonly lease: Lease; readonly since: number } | undefined;

  /** Whether the lease may be acquired: it is free, or was not renewed for a term. */
  function isExpired(lease: Lease | undefined): boolean {
    if (!lease) return true;
    if (watched?.lease.holder === lease.holder && watched.lease.until === lease.until) {
      return monotonic() - watched.since >= termMs;
    }
    watched = { lease, since: monotonic() };
    return false;
  }

  return {
    name,
    holder,
    /** Whether this process holds the lease, so that no other process does. */
    isHeld: () => renewedAt !== undefined && monotonic() - renewedAt < termMs,
    /** Renews the lease, or acquires one that is free or expired. Must be called at least every third of a term. */
    async keep(): Promise<void> {
      const begun = monotonic();
      const until = now() + termMs;
      if (renewedAt !== undefined) {
        // A lost lease is acquired again by the next call at the earliest: the caller sees the loss.
        renewedAt = (await store.renew(holder, name, until)) ? begun : undefined;
        return;
      }
      const current = (await store.list()).find((lease) => lease.name === name);
      if (!isExpired(current) || !(await store.replace({ name, holder, until }, current))) return;
      renewedAt = begun;
      watched = undefined;
    },
    async release(): Promise<void> {
      if (renewedAt === undefined) return;
      renewedAt = undefined;
      await store.release(name, holder);
    },
  };
}
