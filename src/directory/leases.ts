import type { MaybePromise } from './store.ts';

/** The right of one process at a time, on any machine, to do a job for all. */
export interface Lease {
  readonly name: string;
  /** A unique ID of the process that has it. */
  readonly holder: string;
  /** The expiry, renewed by the holder and by its clock, in milliseconds since the epoch. */
  readonly until: number;
}

/** Stores leases. */
export interface LeaseStore {
  release(name: string, holder: string): Promise<void>;
  list(): MaybePromise<readonly Lease[]>;
  /** Writes a lease if the stored one is still `expected` (undefined: none). Returns whether it did. */
  replace(lease: Lease, expected: Lease | undefined): Promise<boolean>;
  /** Extends a lease that this holder still has. Returns whether it does. */
  renew(holder: string, name: string, until: number): Promise<boolean>;
}
