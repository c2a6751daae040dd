import type { CopiedTable } from './tables.ts';

/** The values of a row's primary key. */
export type PrimaryKey = readonly (string | number)[];

/** A range of keys of a table: greater than `after`, up to and including `to`. */
export interface KeyRange {
  readonly after: PrimaryKey | undefined;
  readonly to: PrimaryKey | undefined;
}

/** The number of rows of a range, and a digest of all columns that must be equal. */
export interface RangeDigest {
  readonly rows: number;
  readonly digest: string;
}

/** The row of the `instance` table. */
export interface Installation {
  readonly storeId: string;
  readonly accessVersion: number;
}

/**
 * A database to read rows from: the source, as of one snapshot, or the target. Every engine serializes a row to the
 * same text: a JSON object on one line, its columns in the order of the table's, bytes in hexadecimal digits. A digest is
 * the SHA-256 of such lines.
 */
export interface CopySource {
  /** Identifies the database among all others. */
  identity(): Promise<string>;
  installation(): Promise<Installation>;
  count(table: CopiedTable): Promise<number>;
  /** The key of the last row of the page after a key; undefined where fewer rows than a page remain. */
  pageEnd(table: CopiedTable, after: PrimaryKey | undefined): Promise<PrimaryKey | undefined>;
  digest(table: CopiedTable, range: KeyRange): Promise<RangeDigest>;
  rows(table: CopiedTable, range: KeyRange): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Rows to write in one commit, on condition that the installation ID of the target is still `marker`. */
export interface RowBatch {
  readonly table: CopiedTable;
  readonly rows: readonly string[];
  readonly marker: string;
}

/** The database to write to. It refuses writes once another copy into it has begun. */
export interface CopyTarget extends CopySource {
  /** Removes rows by their keys. */
  remove(batch: RowBatch): Promise<void>;
  /** Adds rows. In a referenced table it replaces existing ones. */
  put(batch: RowBatch): Promise<void>;
  /** Replaces the installation if it is still `old`. Returns whether it was. */
  replaceInstallation(old: Installation, installation: Installation): Promise<boolean>;
  /** Makes the engine collect planner statistics. */
  analyze(): Promise<void>;
}
