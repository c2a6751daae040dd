import type { IsOverloaded, MaybePromise } from '../directory/store.ts';
import type { Uuid } from '../domain/id.ts';
import type { Work, WorkResult } from './transaction_work.ts';

/**
 * What is written: records of these realms (the nil UUID where a request names none), or what belongs to no realm. Who
 * writes in the same place writes one after the other, so that what a piece of work has read there still holds when it
 * commits.
 */
export type WriteScope = readonly Uuid[] | 'instance';

/** The transactions of one engine. */
export interface Transactions {
  /** Runs a piece of work that only reads, all of it on the newest commit there is. */
  read<T>(work: () => Work<T>): MaybePromise<T>;
  /**
   * Runs a piece of work in a transaction that it may share with what else waits; it is undone alone. Resolves after
   * the commit is on disk.
   */
  write<T>(scene: WriteScope, work: () => Work<WorkResult<T>>): Promise<T>;
  /** Whether a write would wait for too long. */
  readonly isOverloaded: IsOverloaded;
  /** Lets other writers run between the commits of a long job. */
  yieldToWriters(): Promise<void>;
}
