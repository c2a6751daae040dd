import type { ConsoleLink } from '../../auth/port.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { all, execute, first, type Long, type Work } from '../transaction_work.ts';

const DELETE_EXPIRED = 'delete from console_link where expires_at <= ?';
const INSERT = 'insert into console_link (digest, label, scopes, realms, expires_at) values (?, ?, ?, ?, ?)';
const SELECT = 'select label, scopes, realms, expires_at from console_link where digest = ?';
const DELETE = 'delete from console_link where digest = ?';
const ANY_EXPIRED = 'select 1 from console_link where expires_at <= ? limit 1';

/** A link that expires later than this was created by a fast clock. */
const AHEAD_MS_MAX = LIMITS.consoleLinkMsMax + LIMITS.clockLeewayMs;

interface LinkRow {
  readonly label: string;
  readonly scopes: string;
  readonly realms: string;
  readonly expires_at: Long;
}

/** Inserts a link under the digest of its code, and deletes expired links. */
export function* insertLink(digest: string, link: ConsoleLink, now: number): Work<void> {
  yield* execute(DELETE_EXPIRED, now);
  const { label, scopes, realms, expiresAt } = link;
  yield* execute(INSERT, digest, label, [...scopes].join(' '), [...realms].join(' '), expiresAt);
}

/** The valid link of a code, which stays valid. */
export function* findLink(digest: string, now: number): Work<ConsoleLink | undefined> {
  const row = yield* first<LinkRow>(SELECT, digest);
  if (!row) return undefined;
  const leftMs = Number(row.expires_at) - now;
  return leftMs > 0 && leftMs <= AHEAD_MS_MAX ? linkOf(row) : undefined;
}

/** The valid link of a code, which is deleted: of concurrent callers only one gets it. */
export function* redeemLink(digest: string, now: number): Work<ConsoleLink | undefined> {
  const link = yield* findLink(digest, now);
  return link && (yield* execute(DELETE, digest)) === 1 ? link : undefined;
}

/** Whether there are expired links. */
export function* hasExpiredLinks(now: number): Work<boolean> {
  return (yield* all(ANY_EXPIRED, now)).length > 0;
}

/** Deletes expired links. Returns how many. */
export function deleteExpiredLinks(now: number): Work<number> {
  return execute(DELETE_EXPIRED, now);
}

function linkOf({ label, scopes, realms, expires_at }: LinkRow): ConsoleLink {
  return {
    label,
    scopes: new Set(scopes.split(' ')),
    realms: realms === '*' ? '*' : new Set(realms.split(' ') as Uuid[]),
    expiresAt: Number(expires_at),
  };
}
