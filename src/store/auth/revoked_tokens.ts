import type { AuditEntry } from '../../domain/audit_entry.ts';
import { LIMITS } from '../../domain/limits.ts';
import { revokedTokenTable } from '../tables/installation.ts';
import type { StoredRow } from '../tables/table.ts';
import { execute, first, type Long, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

/** A token that was revoked before it expired, by its identifier; or all tokens of a session, by that of the session. */
export type RevokedToken = StoredRow<typeof revokedTokenTable>;

/** Increments the version of the access table. */
export const TOUCH_ACCESS = 'update instance set access_version = access_version + 1';

export type ChangeAccess = ReturnType<typeof openChanges>;

/** Returns a function that runs work. If the outcome is a change, it is committed with a new version of the access table. */
export function openChanges(write: Transactions['write']) {
  return <T>(
    work: () => Work<T>,
    auditEntry?: AuditEntry,
    isChange: (outcome: T) => boolean = Boolean,
  ): Promise<T> =>
    write('instance', function* () {
      const value = yield* work();
      const keep = isChange(value);
      if (keep) yield* execute(TOUCH_ACCESS);
      return { value, keep, ...(auditEntry ? { auditEntries: [auditEntry] } : {}) };
    });
}

export const ALL_REVOKED = 'select jti from revoked_token';
const DELETE_EXPIRED = 'delete from revoked_token where expires_at <= ?';
const KNOWN = 'select 1 from revoked_token where jti = ?';
const COUNT = 'select count(*) as count from revoked_token where client_id = ?';

/** Adds a revoked token, unless its client has `most`. Deletes those that a process with a slow clock does not accept any more either. */
export function* revokeToken(
  { jti, clientId, expiresAt }: RevokedToken,
  at: number,
  most: number,
): Work<'new' | 'known' | 'too many'> {
  yield* execute(DELETE_EXPIRED, at - 2 * LIMITS.clockLeewayMs);
  if (yield* first(KNOWN, jti)) return 'known';
  const count = Number((yield* first<{ readonly count: Long }>(COUNT, clientId))?.count ?? 0);
  if (count >= most) return 'too many';
  yield* execute(revokedTokenTable.insert, jti, clientId, expiresAt);
  return 'new';
}
