import type { KeyCheck, SealedStore, SealedValue, SecretLocation } from '../../auth/port.ts';
import type { AuditEntry } from '../../domain/audit_entry.ts';
import { INSERT_CHECK, IS_KEY_KNOWN } from '../auth/access.ts';
import { TOUCH_ACCESS } from '../auth/revoked_tokens.ts';
import type { Dialect } from '../dialect.ts';
import { all, execute, first, type Long, type Work, type WorkResult } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { SEALED_COLUMNS, type SealedColumn } from './sealed_columns.ts';

/** Not a key ID, and so in no ciphertext, however short. */
const NO_KEY = '-';

interface ValueRow {
  readonly realm: string;
  readonly id: string;
  readonly sealed: Uint8Array;
}

/** The statements about one column of ciphertexts. An empty value is a deleted secret. */
function textsOf({ table, column, realm, id }: SealedColumn, { hexAfterFirst }: Dialect) {
  const isByOther = `${column} is not null and length(${column}) > 0 and ${hexAfterFirst(column)} <> ?`;
  const select = `select ${realm} as realm, ${id} as id, ${column} as sealed from ${table} where ${isByOther}`;
  const inOrder = 'order by realm, id limit ?';
  return {
    table,
    column,
    /** Parameters: the key to exclude, limit. */
    select: `${select} ${inOrder}`,
    /** Parameters: the key to exclude, realm and ID of the last value, limit. */
    selectAfter: `${select} and (${realm}, ${id}) > (?, ?) ${inOrder}`,
    /** Parameters: the new value, realm, ID, the expected value. */
    update: `update ${table} set ${column} = ? where ${realm} = ? and ${id} = ? and ${column} = ?`,
    /** Parameters: the key. */
    hasOther: `select 1 from ${table} where ${isByOther} limit 1`,
  };
}

const CHECKS = 'select key_id, created_at from keyring';
const RETIRE = 'delete from keyring where key_id <> ?';

/** Sealed values and the key checks of the keyring. */
export function openSealedStore({ read, write }: Transactions, dialect: Dialect): SealedStore {
  const columns = SEALED_COLUMNS.map((column) => textsOf(column, dialect));
  function* valuesAfter(
    notBy: string,
    after: SecretLocation | undefined,
    limit: number,
  ): Work<SealedValue[]> {
    const found: SealedValue[] = [];
    const start = columns.findIndex(({ table, column }) => table === after?.table && column === after.column);
    for (const [index, { table, column, select, selectAfter }] of columns.entries()) {
      if (index < start) continue;
      const left = limit - found.length;
      const rows =
        after && index === start
          ? yield* all<ValueRow>(selectAfter, notBy, after.realm, after.id, left)
          : yield* all<ValueRow>(select, notBy, left);
      for (const { realm, id, sealed } of rows)
        found.push({ location: { table, column, realm, id }, sealed });
      if (found.length >= limit) break;
    }
    return found;
  }

  function* retireOthers(keyId: string, auditEntry: AuditEntry): Work<WorkResult<boolean>> {
    if (!(yield* first(IS_KEY_KNOWN, keyId))) return { value: false, keep: false };
    // Keeps other writers from storing values of other keys, so that the check below sees all of them.
    if (dialect.lockClocks) yield* execute(dialect.lockClocks);
    for (const { hasOther } of columns) {
      if (yield* first(hasOther, keyId)) return { value: false, keep: false };
    }
    yield* execute(RETIRE, keyId);
    yield* execute(TOUCH_ACCESS);
    return { value: true, keep: true, auditEntries: [auditEntry] };
  }

  return {
    values: (notBy, after, limit) => read(() => valuesAfter(notBy ?? NO_KEY, after, limit)),
    replace: (values) =>
      write('instance', function* () {
        for (const { location, seen, sealed } of values) {
          const texts = columns.find(
            (each) => each.table === location.table && each.column === location.column,
          );
          if (texts) yield* execute(texts.update, sealed, location.realm, location.id, seen);
        }
        yield* execute(TOUCH_ACCESS);
        return { value: undefined, keep: true };
      }),
    addKeyCheck: (check, at) => write('instance', () => addCheck(check, at)),
    retireOtherKeys: (keyId, auditEntry) => write('instance', () => retireOthers(keyId, auditEntry)),
  };
}

/** Adds a key check, if there is at most one of another key. `created_at` keeps the order of their creation. */
function* addCheck({ keyId, sealed }: KeyCheck, at: number): Work<WorkResult<boolean>> {
  const checks = yield* all<{ key_id: string; created_at: Long }>(CHECKS);
  const others = checks.filter(({ key_id }) => key_id !== keyId);
  if (others.length > 1) return { value: checks.length > others.length, keep: false };
  if (checks.length === others.length) {
    const last = Math.max(...checks.map(({ created_at }) => Number(created_at)), 0);
    yield* execute(INSERT_CHECK, keyId, sealed, Math.max(at, last + 1));
  }
  yield* execute(TOUCH_ACCESS);
  return { value: true, keep: true };
}
