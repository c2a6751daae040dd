import type { MaybePromise } from './store.ts';

/** What one process at a time does for all of them, on whichever machine. */
export interface Lease {
  readonly name: string;
  /** Who has it: unlike any other process. */
  readonly holder: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly until: number;
}

/** A lease as it is stored. */
export type HeldLease = Omit<Lease, 'now'>;

/**
 * Where leases rest. Clocks of machines may be apart by LIMITS.clockLeewayMs: what two do at once for that long must do no
 * harm.
 */
export interface LeaseStore {
  /** Takes a lease that is free or over, or goes on with one's own. Answers whether it is had. */
  take(lease: Lease): Promise<boolean>;
  giveBack(name: string, holder: string): Promise<void>;
  held(): MaybePromise<readonly HeldLease[]>;
  /** Puts a lease in the place of the one that was seen, or where none was; answers whether it was still so. */
  replace(lease: HeldLease, seen: HeldLease | undefined): Promise<boolean>;
  /** Moves those that are still this holder's, in one commit, and answers their names. */
  renew(holder: string, names: readonly string[], until: number): Promise<readonly string[]>;
}
