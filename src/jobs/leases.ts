import type { Lease, LeaseStore } from '../directory/leases.ts';
import type { Clock } from '../domain/id.ts';

/** What a process holds of what one process at a time does for all of them. */
export interface Leases {
  readonly holder: string;
  readonly termMs: number;
  /** Whether this process holds a lease, and so surely that nobody else does. */
  holds(name: string): boolean;
  /**
   * Keeps these, takes those of them that nobody keeps any more, and gives back all others. To be called every third of a
   * term or more often.
   */
  keep(names: readonly string[]): Promise<void>;
  release(): Promise<void>;
}

/**
 * Leases of this term, without a clock that two machines would have to share: a lease is over when it has not moved for a
 * whole term while somebody watched, by that one's own clock. Who holds it stops believing so a term after it last began to
 * renew it, which is earlier.
 */
export function openLeases(
  store: LeaseStore,
  termMs: number,
  { mintId, monotonic, now }: Pick<Clock, 'mintId' | 'monotonic' | 'now'>,
): Leases {
  const holder = mintId();
  /** When each lease that is held was last renewed for sure. */
  const held = new Map<string, number>();
  /** The leases of others, and since when each has not moved. */
  const watched = new Map<string, { readonly lease: Lease; readonly since: number }>();

  const holds = (name: string): boolean =>
    monotonic() - (held.get(name) ?? Number.NEGATIVE_INFINITY) < termMs;

  async function renew(names: readonly string[]): Promise<void> {
    const mine = names.filter((name) => held.has(name));
    if (mine.length === 0) return;
    const begun = monotonic();
    const renewed = new Set(await store.renew(holder, mine, now() + termMs));
    for (const name of mine) {
      if (renewed.has(name)) held.set(name, begun);
      else held.delete(name);
    }
  }

  /** Whether a lease may be taken: nobody has it, or it has not moved for a term. */
  function isOver(name: string, lease: Lease | undefined): boolean {
    if (!lease) return true;
    const before = watched.get(name);
    if (!before || before.lease.holder !== lease.holder || before.lease.until !== lease.until) {
      watched.set(name, { lease, since: monotonic() });
      return false;
    }
    return monotonic() - before.since >= termMs;
  }

  async function giveBack(names: readonly string[]): Promise<void> {
    for (const name of names) held.delete(name);
    for (const name of names) await store.release(name, holder);
  }

  return {
    holder,
    termMs,
    holds,
    async keep(names) {
      await giveBack([...held.keys()].filter((name) => !names.includes(name)));
      for (const name of watched.keys()) if (!names.includes(name)) watched.delete(name);
      // One that is lost here is wanted again by the next call: until then its holder learns that it was lost.
      const wanted = names.filter((name) => !held.has(name));
      await renew(names);
      if (wanted.length === 0) return;
      const stored = new Map((await store.list()).map((lease) => [lease.name, lease]));
      for (const name of wanted) {
        const seen = stored.get(name);
        if (!isOver(name, seen)) continue;
        const begun = monotonic();
        if (!(await store.replace({ name, holder, until: now() + termMs }, seen))) continue;
        held.set(name, begun);
        watched.delete(name);
      }
    },
    release: () => giveBack([...held.keys()]),
  };
}
