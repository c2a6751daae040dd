import { NIL_UUID, type StoredId, uuidText } from '../../model/id.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { keyringTable } from '../../sql/tables/installation.ts';
import { kindOf, parameterOf, rowOrder, type Table } from '../../sql/tables/table.ts';
import { TABLES } from '../../sql/tables/tables.ts';
import { all, execute, first, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import { IS_KEY_KNOWN, type KeyCheck } from './access.ts';
import { openChanges } from './access_version.ts';

/** The location that a ciphertext is bound to: it decrypts nowhere else. */
export interface SecretLocation {
  readonly table: string;
  readonly column: string;
  /** The nil UUID where the row belongs to no realm. */
  readonly realm: string;
  readonly id: string;
}

/** A stored secret: its location, and its ciphertext, which names the key that sealed it. */
export interface SealedValue {
  readonly location: SecretLocation;
  readonly sealed: Uint8Array;
}

/** A ciphertext that replaces another one of the same secret. */
export interface ResealedValue extends SealedValue {
  /** The ciphertext it replaces; it must still be stored. */
  readonly seen: Uint8Array;
}

/** Not a key ID, and so in no ciphertext, however short. */
const NO_KEY = '-';

interface ValueRow {
  readonly realm: StoredId;
  readonly id: StoredId;
  readonly sealed: Uint8Array;
}

/** The statements about one column of ciphertexts. An empty value is a deleted secret. */
function textsOf(table: Table, column: string, dialect: Dialect) {
  const { name, key } = table;
  const isByRealm = table.placement === 'by realm';
  const { source, named, order, isAfter } = rowOrder(table, dialect);
  const id = key.at(-1) as string;
  const isByOther = `${column} is not null and length(${column}) > 0 and ${dialect.hexAfterFirst(column)} <> ?1`;
  const realm = isByRealm ? named('realm_id') : `'${NIL_UUID}'`;
  const select = `select ${realm} as realm, ${named(id)} as id, ${column} as sealed from ${source} where ${isByOther}`;
  const hasKey = key.map((name) => `${name} = ${parameterOf(table.columns[name], dialect)}`).join(' and ');
  const inOrder = `order by ${order} limit ?`;
  return {
    table: name,
    column,
    keyOf: ({ realm, id }: SecretLocation) => (isByRealm ? [realm, id] : [id]),
    /** Parameters: the key to exclude, limit. */
    select: `${select} ${inOrder}`,
    /** Parameters: the key to exclude, the key of the last value, limit. */
    selectAfter: `${select} and ${isAfter(2)} ${inOrder}`,
    /** Parameters: the new value, the key, the expected value. */
    update: `update ${name} set ${column} = ? where ${hasKey} and ${column} = ?`,
    /** Parameters: the key. */
    hasOther: `select 1 from ${name} where ${isByOther} limit 1`,
  };
}

const RETIRE = 'delete from keyring where key_id <> ?';

/** All sealed values and the checks of the keys that sealed them, as a change of the master key needs them. */
export function openSealedStore({ read, write }: Transactions, dialect: Dialect) {
  const change = openChanges(write);
  const columns = TABLES.flatMap((table) =>
    Object.entries(table.columns)
      .filter(([, column]) => kindOf(column).kind === 'sealed')
      .map(([name]) => textsOf(table, name, dialect)),
  );

  function* valuesAfter(
    notBy: string,
    after: SecretLocation | undefined,
    limit: number,
  ): Work<readonly SealedValue[]> {
    const found: SealedValue[] = [];
    const start = columns.findIndex(({ table, column }) => table === after?.table && column === after.column);
    for (const [index, { table, column, select, selectAfter, keyOf }] of columns.entries()) {
      if (index < start) continue;
      const left = limit - found.length;
      const rows =
        after && index === start
          ? yield* all<ValueRow>(selectAfter, notBy, ...keyOf(after), left)
          : yield* all<ValueRow>(select, notBy, left);
      for (const { realm, id, sealed } of rows)
        found.push({ location: { table, column, realm: uuidText(realm), id: uuidText(id) }, sealed });
      if (found.length >= limit) break;
    }
    return found;
  }

  function* retireOthers(keyId: string): Work<boolean> {
    if (!(yield* first(IS_KEY_KNOWN, keyId))) return false;
    // Keeps other writers from storing values of other keys, so that the check below sees all of them.
    if (dialect.lockClocks) yield* execute(dialect.lockClocks);
    for (const { hasOther } of columns) {
      if (yield* first(hasOther, keyId)) return false;
    }
    yield* execute(RETIRE, keyId);
    return true;
  }

  return {
    /** Sealed values in a stable order, after `after`, at most `limit`; with `notBy`, only those of other keys. */
    values: (notBy: string | undefined, after: SecretLocation | undefined, limit: number) =>
      read(() => valuesAfter(notBy ?? NO_KEY, after, limit)),
    /** Replaces the values that are still `seen`, in one commit. Records and their revisions do not change. */
    replace: (values: readonly ResealedValue[]) =>
      change(function* () {
        for (const { location, seen, sealed } of values) {
          const texts = columns.find(
            (each) => each.table === location.table && each.column === location.column,
          );
          if (texts) yield* execute(texts.update, sealed, ...texts.keyOf(location), seen);
        }
        return true;
      }),
    /** Adds the check of a second key. Returns false if there are two: one change at a time. */
    addKeyCheck: (check: KeyCheck, at: number) => change(() => addCheck(check, at)),
    /** Removes the checks of all other keys, in the commit that finds no value sealed by them. Returns false if there is one. */
    retireOtherKeys: (keyId: string, auditEntry: AuditEntry) => change(() => retireOthers(keyId), auditEntry),
  };
}

export type SealedStore = ReturnType<typeof openSealedStore>;

/** Adds a key check, if there is at most one of another key. `created_at` keeps the order of their creation. */
function* addCheck(check: KeyCheck, at: number): Work<boolean> {
  const checks = (yield* all(keyringTable.select)).map(keyringTable.read);
  if (checks.some(({ keyId }) => keyId === check.keyId)) return true;
  if (checks.length > 1) return false;
  const createdAt = Math.max(at, ...checks.map((each) => each.createdAt + 1));
  return (yield* execute(keyringTable.insert, ...keyringTable.values({ ...check, createdAt }))) === 1;
}
