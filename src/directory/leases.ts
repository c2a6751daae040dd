import type { MaybePromise } from './store.ts';

/** What one process at a time does for all of them, on whichever machine. */
export interface Lease {
  readonly name: string;
  /** Who has it: unlike any other process. */
  readonly holder: string;
  /** Moved by the holder: the instant until which it means to have it, by its own clock, in milliseconds since the epoch. */
  readonly until: number;
}

/** Stores leases. */
export interface LeaseStore {
  release(name: string, holder: string): Promise<void>;
  list(): MaybePromise<readonly Lease[]>;
  /** Writes a lease if the stored one is still `expected` (undefined: none). Returns whether it did. */
  replace(lease: Lease, expected: Lease | undefined): Promise<boolean>;
  /** Extends those that this holder still has, in one commit. Returns their names. */
  renew(holder: string, names: readonly string[], until: number): Promise<readonly string[]>;
}
