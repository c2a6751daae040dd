import type { Uuid } from './id.ts';

/** That a user was erased, and when: all that is left of one. */
export interface Erasure {
  readonly realm: Uuid;
  readonly user: Uuid;
  /** Milliseconds since the epoch. */
  readonly at: number;
}
