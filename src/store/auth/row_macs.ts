import type { LogKeys } from '../../audit/log_keys.ts';
import type { SqlValue } from '../transaction_work.ts';

/**
 * Authenticates rows that grant access or hold a password hash, so that a row that was not written by this program is not
 * honoured (docs/decisions/0009-clients-and-keys.md). It has no keys while a database is only copied or migrated.
 */
export interface RowMacs {
  useKeys(keys: Pick<LogKeys, 'rowMac'>): void;
  /** The MAC of a row with these values; null without keys. */
  of(table: string, ...values: readonly SqlValue[]): Uint8Array | null;
  /** Whether `mac` is the MAC of these values. True without keys. */
  isValid(mac: Uint8Array | null, table: string, ...values: readonly SqlValue[]): boolean;
}

export function openRowMacs(): RowMacs {
  let keys: Pick<LogKeys, 'rowMac'> | undefined;
  const macOf = (given: Pick<LogKeys, 'rowMac'>, table: string, values: readonly SqlValue[]) =>
    given.rowMac(JSON.stringify([table, ...values.map(textOf)]));
  return {
    useKeys(given) {
      keys = given;
    },
    of: (table, ...values) => (keys ? macOf(keys, table, values) : null),
    isValid: (mac, table, ...values) =>
      keys === undefined || (mac !== null && Buffer.compare(mac, macOf(keys, table, values)) === 0),
  };
}

/** An engine may return a 64-bit number as text. */
function textOf(value: SqlValue): string | null {
  if (value === null) return null;
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
}
