import type { ConsoleLink } from '../../auth/port.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { all, execute, first, type Long, type Work } from '../transaction_work.ts';

const FORGET_LATE = 'delete from console_link where expires_at <= ?';
const INSERT = 'insert into console_link (digest, label, scopes, realms, expires_at) values (?, ?, ?, ?, ?)';
const SELECT = 'select label, scopes, realms, expires_at from console_link where digest = ?';
const TAKE = 'delete from console_link where digest = ?';
const ANY_LATE = 'select 1 from console_link where expires_at <= ? limit 1';

/** A link that ends further ahead was made by a clock that is ahead: its minute would begin later. */
const AHEAD_MS_MAX = LIMITS.consoleLinkMsMax + LIMITS.clockLeewayMs;

interface LinkRow {
  readonly label: string;
  readonly scopes: string;
  readonly realms: string;
  readonly expires_at: Long;
}

/** Keeps what a one-time code is worth under the digest of it; those that came too late go. */
export function* keepLink(digest: string, link: ConsoleLink, now: number): Work<void> {
  yield* execute(FORGET_LATE, now);
  const { label, scopes, realms, expiresAt } = link;
  yield* execute(INSERT, digest, label, [...scopes].join(' '), [...realms].join(' '), expiresAt);
}

/** What a code is worth now; it stays what it is. */
export function* findLink(digest: string, now: number): Work<ConsoleLink | undefined> {
  const row = yield* first<LinkRow>(SELECT, digest);
  if (!row) return undefined;
  const leftMs = Number(row.expires_at) - now;
  return leftMs > 0 && leftMs <= AHEAD_MS_MAX ? linkOf(row) : undefined;
}

/** The same, and nobody finds it again: of all who take it at once one gets it. */
export function* takeLink(digest: string, now: number): Work<ConsoleLink | undefined> {
  const link = yield* findLink(digest, now);
  return link && (yield* execute(TAKE, digest)) === 1 ? link : undefined;
}

/** Whether any has come too late, and is still there. */
export function* hasExpiredLinks(now: number): Work<boolean> {
  return (yield* all(ANY_LATE, now)).length > 0;
}

/** Removes those. Answers how many. */
export function deleteExpiredLinks(now: number): Work<number> {
  return execute(FORGET_LATE, now);
}

function linkOf({ label, scopes, realms, expires_at }: LinkRow): ConsoleLink {
  return {
    label,
    scopes: new Set(scopes.split(' ')),
    realms: realms === '*' ? '*' : new Set(realms.split(' ') as Uuid[]),
    expiresAt: Number(expires_at),
  };
}
