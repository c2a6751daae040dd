import type { EncodedRow, RowInput, Table } from '../../sql/tables/table.ts';
import type { Row, SqlValue } from '../../sql/transaction_work.ts';
import type { LogKeys } from '../keys.ts';

/** The columns of a table that an HMAC covers. */
export type SignedTable = Pick<Table, 'name' | 'signed'>;

/** A table whose rows have their HMAC in a column `mac`. */
export type TableWithMac = SignedTable & { readonly columns: { readonly mac: 'mac' | 'mac?' } };

export type RowMacs = ReturnType<typeof openRowMacs>;

/**
 * Authenticates rows that grant access or hold a password hash, so that a row that was not written by this program is not
 * honoured (docs/decisions/0009-clients-and-keys.md). It has no keys while a database is only copied or migrated.
 */
export function openRowMacs() {
  let keys: Pick<LogKeys, 'rowMac'> | undefined;

  /**
   * The MAC of a stored row, and of further values; null without keys. It covers the names and values of the columns that are not
   * null: a column that a later release adds changes no MAC before a row has a value in it.
   */
  function of({ name, signed }: SignedTable, stored: Row, ...more: readonly SqlValue[]): Uint8Array | null {
    if (!keys) return null;
    const columns = signed.map((column) => [column, textOf(stored[column] as SqlValue)] as const);
    const covered = columns.filter(([, value]) => value !== null);
    return keys.rowMac(JSON.stringify([name, covered, ...more.map(textOf)]));
  }

  return {
    useKeys(given: Pick<LogKeys, 'rowMac'>): void {
      keys = given;
    },
    of,
    /** The values of a row, with its MAC. */
    signedRow<T extends Table & TableWithMac>(
      table: T,
      row: RowInput<T>,
      ...more: readonly SqlValue[]
    ): EncodedRow {
      const stored = table.encode(row);
      return { ...stored, mac: of(table, stored, ...more) };
    },
    /** Whether the MAC of a stored row is wrong. False without keys. */
    isRowForged: (table: TableWithMac, stored: Row, ...more: readonly SqlValue[]): boolean =>
      isForgedMac(stored.mac as Uint8Array | null, of(table, stored, ...more)),
  };
}

/** Whether a stored MAC is not the expected one. False without keys. */
export function isForgedMac(stored: Uint8Array | null, expected: Uint8Array | null): boolean {
  return expected !== null && (stored === null || Buffer.compare(stored, expected) !== 0);
}

/** An engine may return a 64-bit number as text. */
function textOf(value: SqlValue | undefined): string | null {
  if (value === null || value === undefined) return null;
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
}
