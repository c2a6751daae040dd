import type { MaybePromise } from './store.ts';

/** What one process at a time does for all of them, on whichever machine. */
export interface Lease {
  readonly name: string;
  /** Who has it: unlike any other process. */
  readonly holder: string;
  /** Moved by the holder: the instant until which it means to have it, by its own clock, in milliseconds since the epoch. */
  readonly until: number;
}

/** Where leases rest. */
export interface LeaseStore {
  release(name: string, holder: string): Promise<void>;
  list(): MaybePromise<readonly Lease[]>;
  /** Puts a lease in the place of the one that was seen, or where none was; answers whether it was still so. */
  replace(lease: Lease, seen: Lease | undefined): Promise<boolean>;
  /** Moves those that are still this holder's, in one commit, and answers their names. */
  renew(holder: string, names: readonly string[], until: number): Promise<readonly string[]>;
}
