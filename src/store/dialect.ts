import type { Uuid } from '../domain/id.ts';
import type { Resource } from '../domain/resource.ts';
import type { SqlValue } from './statements.ts';

/** How records of a resource are inserted. */
export interface Insertion {
  /** Parameters: `lead`, then every column of the record. */
  readonly text: string;
  /** What an engine keeps beside the columns of the description. */
  readonly lead: (id: Uuid) => readonly SqlValue[];
}

/** What engines say differently. */
export interface Dialect {
  /** The function that answers where in its first argument the second one stands, from 1; 0 where it does not. */
  readonly position: string;
  /** The function that answers the greater one of two numbers. */
  readonly greatest: string;
  /** Whether checksums stand beside long texts, to be found by (decision 0024). */
  readonly hasChecksums: boolean;
  /** SQL for eight bytes of a value behind its first one, as hexadecimal digits in lower case. */
  readonly hexBehindFirst: (value: string) => string;
  readonly insertion: (resource: Resource, columns: readonly string[]) => Insertion;
}
