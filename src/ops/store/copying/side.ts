import { Refusal } from '../../../model/fault.ts';
import { realmClockTable } from '../../../sql/tables/realm_data.ts';
import { type ColumnKind, kindOf, type Table } from '../../../sql/tables/table.ts';
import { TABLES } from '../../../sql/tables/tables.ts';

/** A table whose rows are copied. */
export interface CopiedTable extends Table {
  /** The names and kinds of the columns that are copied: the target fills columns of its own engine. */
  readonly copied: ReadonlyMap<string, ColumnKind>;
  /** The values of the key of a row. */
  keyOf(row: TextRow): TextRow;
}

/** Each follows those that it references; and all that have the numbers of realms follow the clocks, with which realms get theirs. */
export const COPIED_TABLES: readonly CopiedTable[] = [
  realmClockTable,
  ...TABLES.filter((table) => !table.isOfDatabase && table !== realmClockTable),
].map((table) => {
  const all = Object.entries(table.columns).map(([name, column]) => [name, kindOf(column).kind] as const);
  const copied = new Map(all.filter(([, kind]) => kind !== 'local'));
  const columns = [...copied.keys()];
  const places = table.key.map((column) => columns.indexOf(column));
  return { ...table, copied, keyOf: (row) => places.map((place) => row[place] ?? null) };
});

/** How many rows are read and written at a time. */
export const PAGE_ROWS = 1_000;

/**
 * The values of a row in the order of the table's columns. Every engine returns the same text: bytes as `\x` and hexadecimal
 * digits, IDs with hyphens however they are stored.
 */
export type TextRow = readonly (string | null)[];

/** A database that is read in one transaction. */
export interface CopySource {
  /** The rows after `last` in the order of the key, at most PAGE_ROWS. */
  read(table: CopiedTable, last: TextRow | undefined): Promise<readonly TextRow[]>;
  close(): Promise<void>;
}

/**
 * An empty database that is filled in one transaction. Other processes cannot write to it until the commit. If this process ends
 * before, in any way, the engine rolls back, and the database is as empty as it was.
 */
export interface CopyTarget extends CopySource {
  write(table: CopiedTable, rows: readonly TextRow[]): Promise<void>;
  commit(): Promise<void>;
}

/** Throws Refusal for another schema than that of this program, whose tables may have other columns. */
export function assertNewest(found: number | undefined, newest: number): void {
  if (found === newest) return;
  if (found === undefined) throw new Refusal('there is no database of authrealm at this address');
  throw new Refusal(
    found > newest
      ? `it has schema ${found}, but this program copies ${newest}: use the release that migrated it`
      : `it has schema ${found}, but this program needs ${newest}: run authrealm migrate of this release first`,
  );
}
