import type { Uuid } from '../model/id.ts';
import type { IsOverloaded, MaybePromise } from '../model/store.ts';
import type { Work, WorkResult } from './transaction_work.ts';

/**
 * The scope of a write: records of these realms (the nil UUID for requests without a realm), or data of the installation.
 * Writes in the same scope run one after the other, so that what the work has read there is still valid at its commit. `[]`
 * orders nothing: each statement then has to check what it depends on.
 */
export type WriteScope = readonly Uuid[] | 'instance';

/** The transactions of one engine. */
export interface Transactions {
  /** Runs work that only reads, all of it on the newest commit. */
  read<T>(work: () => Work<T>): MaybePromise<T>;
  /**
   * Runs work in a transaction that it may share with other waiting work; it can be rolled back separately. Resolves after
   * the commit is on disk.
   */
  write<T>(scope: WriteScope, work: () => Work<WorkResult<T>>): Promise<T>;
  /** Whether a write would wait too long. */
  readonly isOverloaded: IsOverloaded;
  /** Lets other writers run between the commits of a long job. */
  yieldToWriters(): Promise<void>;
}

export interface WriterFigures {
  readonly writesWaiting: number;
  readonly commits: number;
  /** Commits that were delayed or retried because of lock contention. */
  readonly retries: number;
}
