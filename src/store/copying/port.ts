import type { CopiedTable } from './tables.ts';

/** The values of a row's primary key. */
export type PrimaryKey = readonly (string | number)[];

/** Rows of a table in the order of the key: those behind one key, up to another one and with it. */
export interface KeyRange {
  readonly after: PrimaryKey | undefined;
  readonly to: PrimaryKey | undefined;
}

/** How many rows a range has, and a digest of all that must be equal in them. */
export interface RangeDigest {
  readonly rows: number;
  readonly digest: string;
}

/** What stands in the table of the installation. */
export interface Installation {
  readonly storeId: string;
  readonly accessVersion: number;
}

/**
 * A database that is copied from, as of one moment, or to. A row on its way is a JSON object on a line of its own, the
 * same text from every engine: its columns in the order of `carried`, bytes as hexadecimal digits. A digest is the
 * SHA-256 of such lines, less the loose column.
 */
export interface CopySource {
  /** Tells this database from every other one. */
  identity(): Promise<string>;
  installation(): Promise<Installation>;
  count(table: CopiedTable): Promise<number>;
  /** The key of the last row of the page behind a key; undefined where the rows left do not fill one. */
  pageEnd(table: CopiedTable, after: PrimaryKey | undefined): Promise<PrimaryKey | undefined>;
  sum(table: CopiedTable, range: KeyRange): Promise<RangeDigest>;
  rows(table: CopiedTable, range: KeyRange): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Rows to be written in one commit, where the installation is still called `mark` then. */
export interface RowBatch {
  readonly table: CopiedTable;
  readonly rows: readonly string[];
  readonly mark: string;
}

/** A database that is copied to. A write is refused once another copy into it has begun. */
export interface CopyTarget extends CopySource {
  /** Removes rows, found by their keys alone. */
  remove(batch: RowBatch): Promise<void>;
  /** Adds rows, and replaces those of a table that others refer to. */
  put(batch: RowBatch): Promise<void>;
  /** Replaces one installation by another one. Returns whether the first one was there. */
  replaceInstallation(old: Installation, installation: Installation): Promise<boolean>;
  /** Lets the engine gather statistics of what it holds now. */
  analyze(): Promise<void>;
}
