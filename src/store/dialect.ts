import type { Uuid } from '../domain/id.ts';
import type { Resource } from '../domain/resource.ts';
import type { SqlValue } from './records/statements.ts';

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
  /** Whether checksums stand beside long texts, to be found by (decision 0006). */
  readonly hasHashColumns: boolean;
  /** SQL for eight bytes of a value behind its first one, as hexadecimal digits in lower case. */
  readonly hexBehindFirst: (value: string) => string;
  readonly insertion: (resource: Resource, columns: readonly string[]) => Insertion;
  /** How many inserts are best tried together: with one wait for all of them, and a savepoint to undo all of them. */
  readonly insertsTogether: number;
  /** Whether long numbers come back as text. */
  readonly returnsLongsAsText: boolean;
  readonly lists: ListDialect;
  /** What a select that ends so does with the rows it answers, until the transaction ends. */
  readonly rowLocks: RowLocks;
  readonly clockOrder: ClockOrder;
}

/** How lists are read. */
export interface ListDialect {
  /** Behind the name of a table: the index to read it by. Empty where the engine is left to choose. */
  readonly indexHint: (index: string) => string;
  /** Whether a column has one of the values of a place, and those values as one. */
  readonly isAmong: (column: string) => string;
  readonly among: (values: readonly string[]) => SqlValue;
  /**
   * `n`, how many rows there are behind `source`, counted up to `most`; and `slots`, where they lie, if an engine can
   * tell.
   */
  readonly few: (source: string, most: number) => string;
  /** What holds of the rows in those slots, which are its one value; undefined where none were told. */
  readonly isInRowIds: string | undefined;
}

/** The order in which clocks of realms moved, told by numbers that may be shared. */
export interface ClockOrder {
  /** The number of what is being written now. */
  readonly now: string;
  /**
   * A select of `begins`, the least number from which on anything may still become visible, and `ends`, which is greater than
   * that of everything that is visible.
   */
  readonly bounds: string;
}

/** Ends of a select where writers of several realms meet. Empty where an engine has one writer at a time. */
export interface RowLocks {
  /** Waits for whoever writes these rows, and lets nobody else write them. */
  readonly exclusive: string;
  /** The same, of those that nobody else claims: it never waits. */
  readonly skipLocked: string;
  /** Others may claim them so as well, and nobody may write them. */
  readonly shared: string;
}
