import type { Uuid } from '../model/id.ts';
import type { Resource } from '../model/resource.ts';
import type { SqlValue } from './transaction_work.ts';

/** How records of a resource are inserted. */
export interface Insertion {
  /** Parameters: `lead`, then every column of the record. */
  readonly text: string;
  /** Values of columns that only this engine has. */
  readonly lead: (id: Uuid) => readonly SqlValue[];
}

/** The differences between the engines' SQL. */
export interface Dialect {
  /** The function that returns the position of its second argument in the first one, from 1; 0 if there is none. */
  readonly position: string;
  /** The function that returns the greater of two numbers. */
  readonly greatest: string;
  /** Whether long texts have hash columns for lookups (docs/decisions/0006-sqlite-lookups.md). */
  readonly hasHashColumns: boolean;
  /** SQL for the second to ninth byte of a value, as hexadecimal digits in lower case. */
  readonly hexAfterFirst: (value: string) => string;
  /**
   * SQL for an ID as the tables of records and the log store it: the ID of a parameter, or that in a column of another table, where it
   * is text.
   */
  readonly id: (text: string) => string;
  /**
   * SQL for a realm as the tables of records other than realms, the log and the salts store it: its ID on PostgreSQL; on SQLite the
   * number in the row of its clock, and null where it has none. `id`: the ID as text.
   */
  readonly realm: (id: string) => string;
  /** SQL for whether a realm, by the first parameter, is in a slot where lookups do not find it. */
  readonly isMisplaced: string;
  /** Creates the clock of a realm that has none, and so its number. Undefined where every write does so first. */
  readonly createClock: string | undefined;
  /** Rows that are found in several realms. */
  readonly foundRows: RealmRows;
  /** Rows in the order of the IDs of their realms, and then of an index that begins with the realm. */
  readonly orderedRows: RealmRows;
  readonly insertion: (resource: Resource, columns: readonly string[]) => Insertion;
  /** Whether the engine returns 64-bit numbers as text. */
  readonly returnsLongsAsText: boolean;
  readonly lists: ListDialect;
  readonly words: WordDialect;
  /** Row locks, to append to a select. */
  readonly rowLocks: RowLocks;
  /**
   * Waits for writers of all realms and of the installation, and blocks others until the end of the transaction; undefined
   * for an engine with a single writer.
   */
  readonly lockClocks: string | undefined;
  readonly clockOrder: ClockOrder;
}

/** How rows of several realms are read. */
export interface RealmRows {
  /** The source of the rows of a table. */
  readonly source: (table: string) => string;
  /** SQL for the ID of their realm. */
  readonly id: (table: string) => string;
  /** SQL for their realm, and for one to compare it with: both as IDs, or as SQLite stores them. */
  readonly realm: string;
  readonly compared: (id: string) => string;
  /** SQL for whether a row comes after a realm and a value of the next column of the order. */
  readonly isAfter: (table: string, realm: string, column: string, value: string) => string;
}

/** How records are found by the beginnings of their words. */
export interface WordDialect {
  /** SQL for the words of the records of a table: what `match` searches. */
  readonly source: (table: string) => string;
  /** SQL for whether a record has words that begin with these. */
  readonly match: (source: string, words: readonly string[]) => string;
  /** The values of its placeholders. */
  readonly values: (words: readonly string[]) => readonly string[];
  /** For an engine without statistics; undefined for others, which choose themselves. */
  readonly choice: WordChoice | undefined;
}

/** By which word records are found. `match` finds them by the first word, and checks the others in each record. */
export interface WordChoice {
  /** Selects `n`, the number of words that begin with this one, counted up to `most`. */
  readonly probe: (source: string, word: string, most: number) => string;
  /** The same condition, if most records have each word: it is checked in each record. */
  readonly broad: Pick<WordDialect, 'match' | 'values'>;
}

/** How lists are read. */
export interface ListDialect {
  /** Names the index to use, after a table name. Empty if the engine chooses. */
  readonly indexHint: (index: string) => string;
  /** SQL for whether a column has one of several IDs that are one parameter, and that parameter; `id`: SQL for an ID as it is there. */
  readonly isAmong: (column: string, id?: Dialect['id']) => string;
  readonly among: (values: readonly string[]) => SqlValue;
  /** How many records of a list are read to sort them in the program. With more, the engine sorts them. */
  readonly gatheredMax: number;
}

/** The order in which the clocks of realms advanced, by numbers that several realms may share. */
export interface ClockOrder {
  /** SQL for the number of the current write. */
  readonly now: string;
  /**
   * A select of `begins`, the least number that may still become visible, and `ends`, which is greater than all visible
   * numbers.
   */
  readonly bounds: string;
}

/** Row lock clauses. Empty for an engine with a single writer. */
export interface RowLocks {
  /** Waits for writers of these rows, and blocks other writers and lockers. */
  readonly exclusive: string;
  /** The same, but skips rows that others have locked: it never waits. */
  readonly skipLocked: string;
  /** Blocks writers of these rows, but not other shared locks. */
  readonly shared: string;
}
