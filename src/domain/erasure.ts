import type { Uuid } from './id.ts';

/** The record that remains of an erased user. */
export interface Erasure {
  readonly realm: Uuid;
  readonly user: Uuid;
  /** Milliseconds since the epoch. */
  readonly at: number;
}
