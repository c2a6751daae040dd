import type { RevokedToken } from '../../auth/port.ts';
import { LIMITS } from '../../domain/limits.ts';
import { execute, first, type Long, type Work } from '../transaction_work.ts';

export const ALL_REVOKED = 'select jti from revoked_token';
const FORGET_ENDED = 'delete from revoked_token where expires_at <= ?';
const KNOWN = 'select 1 from revoked_token where jti = ?';
const COUNT = 'select count(*) as count from revoked_token where client_id = ?';
const INSERT = 'insert into revoked_token (jti, client_id, expires_at) values (?, ?, ?)';

/** Adds a token to those that were taken back, unless its client has too many; those that have ended go. */
export function* revokeToken(
  { jti, clientId, expiresAt }: RevokedToken,
  at: number,
): Work<'new' | 'known' | 'too many'> {
  // Until then a clock that is late may still accept it.
  yield* execute(FORGET_ENDED, at - 2 * LIMITS.clockLeewayMs);
  if (yield* first(KNOWN, jti)) return 'known';
  const held = Number((yield* first<{ readonly count: Long }>(COUNT, clientId))?.count ?? 0);
  if (held >= LIMITS.revokedTokensPerClientMax) return 'too many';
  yield* execute(INSERT, jti, clientId, expiresAt);
  return 'new';
}
