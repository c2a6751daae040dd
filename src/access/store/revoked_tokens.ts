import { LIMITS } from '../../model/limits.ts';
import { revokedTokenTable } from '../../sql/tables/installation.ts';
import type { StoredRow } from '../../sql/tables/table.ts';
import { execute, first, type Long, type Work } from '../../sql/transaction_work.ts';

/** A token that was revoked before it expired, by its identifier; or all tokens of a session, by that of the session. */
export type RevokedToken = StoredRow<typeof revokedTokenTable>;

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
