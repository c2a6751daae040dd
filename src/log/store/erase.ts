import type { Revision, Uuid } from '../../model/id.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import { type ChangeOrigin, changeOf } from '../../model/log/change.ts';
import { user } from '../../model/resources.ts';
import type { Removals } from '../../records/store/removal.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { execute, first, type Work, type WorkResult } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';

/** A request to erase a user. */
export interface EraseRequest {
  readonly key: readonly [realm: Uuid, user: Uuid];
  readonly origin: ChangeOrigin;
  /** Generates the revisions of records that change. */
  readonly mintRevision: () => Revision;
  readonly auditEntry: AuditEntry;
  /** The time of an erasure that another database recorded: it is recorded here also where no user is known. */
  readonly recordedAt?: number;
}

/** Every statement about erasures. */
export const erasingTexts = (dialect: Dialect) => ({
  salt: `select 1 from user_salt where ${isOfUser(dialect)}`,
  deleteSalt: `delete from user_salt where ${isOfUser(dialect)}`,
  entry: `select 1 from log_entry where ${isOfUser(dialect)} limit 1`,
  erasure: 'select 1 from erasure where realm_id = ? and user_id = ?',
  insert: `insert into erasure (realm_id, user_id, at) values (?, ?, ?)
    on conflict (realm_id, user_id) do update set at = excluded.at, told_at = null`,
});

const isOfUser = ({ realm, id }: Dialect) => `realm_id = ${realm('?')} and user_id = ${id('?')}`;

/** Erases users: their records, the keys of their log entries, and the values in them. */
export function openErasing(removals: Removals, { write, yieldToWriters }: Transactions, dialect: Dialect) {
  const sql = erasingTexts(dialect);

  /** Whether any row shows that this user existed. */
  function* isKnown(realm: Uuid, id: Uuid): Work<boolean> {
    for (const text of [sql.salt, sql.entry, sql.erasure]) if (yield* first(text, realm, id)) return true;
    return false;
  }

  /** One commit. Undefined after one that removed only a page of the user's records. */
  function* eraseNext(request: EraseRequest): Work<WorkResult<boolean | undefined>> {
    const { key, origin, mintRevision, auditEntry, recordedAt } = request;
    const [realm, id] = key;
    const removal = { ...request, resource: user, isErasure: true } as const;
    const { value, entries = [] } = yield* removals.remove(removal);
    if (value.kind === 'too_many') return { ...(yield* removals.removePage(removal)), value: undefined };
    const isUnknown = value.kind === 'not_found' && !(yield* isKnown(realm, id));
    if (isUnknown && recordedAt === undefined) return { value: false, keep: false };
    yield* execute(sql.insert, realm, id, recordedAt ?? origin.at);
    if (isUnknown) return { value: false, keep: true };
    yield* execute(sql.deleteSalt, realm, id);
    const change = changeOf(user, 'erased', { key, revision: mintRevision() }, origin);
    return { value: true, keep: true, entries: [...entries, { change }], auditEntries: [auditEntry] };
  }

  return {
    /**
     * Deletes the user and the records below it, in several commits if they are many. With the last one their data in the log cannot
     * be decrypted any more, and the erasure is in the log and in the list of erasures. Returns false if no record and no log entry
     * has this user.
     */
    async erase(request: EraseRequest): Promise<boolean> {
      for (;;) {
        const isErased = await write([request.key[0]], () => eraseNext(request));
        if (isErased !== undefined) return isErased;
        await yieldToWriters();
      }
    },
  };
}

export type Eraser = ReturnType<typeof openErasing>;
