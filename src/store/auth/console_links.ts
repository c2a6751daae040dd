import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Realms, Scopes } from '../../domain/principal.ts';
import { all, execute, first, type Long, type Work } from '../transaction_work.ts';
import type { RowMacs } from './row_macs.ts';

/** The rights that a console link grants to the person who follows it. */
export interface ConsoleLink {
  /** The label given by its creator. */
  readonly label: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
  readonly expiresAt: number;
}

const DELETE_EXPIRED = 'delete from console_link where expires_at <= ?';
const INSERT =
  'insert into console_link (digest, label, scopes, realms, expires_at, mac) values (?, ?, ?, ?, ?, ?)';
const SELECT_ALL = 'select digest, label, scopes, realms, expires_at, mac from console_link';
const SELECT = `${SELECT_ALL} where digest = ?`;
const DELETE = 'delete from console_link where digest = ?';
const ANY_EXPIRED = 'select 1 from console_link where expires_at <= ? limit 1';

/** A link that expires later than this was created by a fast clock. */
const AHEAD_MS_MAX = LIMITS.consoleLinkMsMax + LIMITS.clockLeewayMs;

interface LinkRow {
  readonly digest: string;
  readonly label: string;
  readonly scopes: string;
  readonly realms: string;
  readonly expires_at: Long;
  readonly mac: Uint8Array | null;
}

/** Inserts a link under the digest of its code, and deletes expired links. */
export function* insertLink(digest: string, link: ConsoleLink, macs: RowMacs, now: number): Work<void> {
  yield* execute(DELETE_EXPIRED, now);
  const { label, scopes, realms, expiresAt } = link;
  const values = [digest, label, [...scopes].join(' '), [...realms].join(' '), expiresAt];
  yield* execute(INSERT, ...values, macs.of('console_link', ...values));
}

/** The valid link of a code, which stays valid. `forged`: it was not written by the service. */
export function* findLink(
  digest: string,
  macs: RowMacs,
  now: number,
): Work<ConsoleLink | 'forged' | undefined> {
  const row = yield* first<LinkRow>(SELECT, digest);
  if (!row) return undefined;
  if (isForged(row, macs)) return 'forged';
  const leftMs = Number(row.expires_at) - now;
  return leftMs > 0 && leftMs <= AHEAD_MS_MAX ? linkOf(row) : undefined;
}

/** The valid link of a code, which is deleted: of concurrent callers only one gets it. */
export function* redeemLink(digest: string, macs: RowMacs, now: number): Work<ConsoleLink | undefined> {
  const link = yield* findLink(digest, macs, now);
  return typeof link === 'object' && (yield* execute(DELETE, digest)) === 1 ? link : undefined;
}

/** The digests of links that were not written by the service. */
export function* readForgedLinks(macs: RowMacs): Work<readonly string[]> {
  const rows = yield* all<LinkRow>(SELECT_ALL);
  return rows.filter((row) => isForged(row, macs)).map(({ digest }) => digest);
}

/** Whether there are expired links. */
export function* hasExpiredLinks(now: number): Work<boolean> {
  return (yield* all(ANY_EXPIRED, now)).length > 0;
}

/** Deletes expired links. Returns how many. */
export function deleteExpiredLinks(now: number): Work<number> {
  return execute(DELETE_EXPIRED, now);
}

function isForged({ digest, label, scopes, realms, expires_at, mac }: LinkRow, macs: RowMacs): boolean {
  return !macs.isValid(mac, 'console_link', digest, label, scopes, realms, expires_at);
}

function linkOf({ label, scopes, realms, expires_at }: LinkRow): ConsoleLink {
  return {
    label,
    scopes: new Set(scopes.split(' ')),
    realms: realms === '*' ? '*' : new Set(realms.split(' ') as Uuid[]),
    expiresAt: Number(expires_at),
  };
}
