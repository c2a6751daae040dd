import type { Uuid } from '../id.ts';

/** The record that remains of an erased user. */
export interface Erasure {
  readonly realm: Uuid;
  readonly user: Uuid;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * What is left of erased data in the files of the database. `overwritten`: no row, index, free page or log holds it, but unused parts of
 * pages may hold copies. `archived`: data files and archived logs of a server hold it, which only its operator can remove.
 */
export type ErasedBytes = 'overwritten' | 'archived';
