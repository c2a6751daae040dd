import type { MaybePromise } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';

/** Computes digests that only the processes of this installation can compute. */
export interface SignInKeys {
  /** HMAC-SHA-256, under a key of its own. 32 bytes. */
  signInMac(text: string): Uint8Array;
}

/** A token bucket of a realm. It names no user and no address: `name` and `source` are keyed digests, or empty. */
export interface BudgetKey {
  readonly name: string;
  readonly kind: number;
  readonly source: string;
}

/** Tokens taken from a bucket. Instants are milliseconds since the epoch. */
export interface BudgetTake extends BudgetKey {
  /** When the bucket would be full after this, if it is full now. */
  readonly fullAt: number;
  /** By how much later it is full otherwise. */
  readonly refillMs: number;
  /** The latest instant at which it can be full: a later one was stored by a clock that was set back since. */
  readonly fullAtMax: number;
}

/** Stores the token buckets that limit password checks (docs/decisions/0024-sign-in-by-password.md#budgets). */
export interface BudgetStore {
  /** When each of these buckets is full again; 0 for one without a row, which is full. */
  fullAt(realmId: Uuid, keys: readonly BudgetKey[]): MaybePromise<readonly number[]>;
  /** Takes from several buckets in one commit. Concurrent takes of all processes add up. */
  take(realmId: Uuid, takes: readonly BudgetTake[]): Promise<void>;
  /** Deletes all buckets of a name: they are full again. */
  removeName(realmId: Uuid, name: string): Promise<void>;
  /** Deletes the rows of full buckets, at most `LIMITS.cascadeRecordsMax`. Returns how many. */
  deleteFull(now: number): Promise<number>;
}
