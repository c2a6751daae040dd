import { LIMITS } from '../../domain/limits.ts';
import { consoleLinkTable } from '../tables/installation.ts';
import type { StoredRow } from '../tables/table.ts';
import { all, execute, first, type Work } from '../transaction_work.ts';
import type { RowMacs } from './row_macs.ts';

/** The rights that a console link grants to the person who follows it. */
export type ConsoleLink = Omit<StoredRow<typeof consoleLinkTable>, 'digest'>;

const DELETE_EXPIRED = 'delete from console_link where expires_at <= ?';
const SELECT = `${consoleLinkTable.select} where digest = ?`;
const DELETE = 'delete from console_link where digest = ?';
const ANY_EXPIRED = 'select 1 from console_link where expires_at <= ? limit 1';

/** A link that expires later than this was created by a fast clock. */
const AHEAD_MS_MAX = LIMITS.consoleLinkMsMax + LIMITS.clockLeewayMs;

/** Inserts a link under the digest of its code, and deletes expired links. */
export function* insertLink(digest: string, link: ConsoleLink, macs: RowMacs, now: number): Work<void> {
  yield* execute(DELETE_EXPIRED, now);
  const row = macs.signedRow(consoleLinkTable, { ...link, digest });
  yield* execute(consoleLinkTable.insert, ...Object.values(row));
}

/** The valid link of a code, which stays valid. `forged`: it was not written by the service. */
export function* findLink(
  digest: string,
  macs: RowMacs,
  now: number,
): Work<ConsoleLink | 'forged' | undefined> {
  const row = yield* first(SELECT, digest);
  if (!row) return undefined;
  if (macs.isRowForged(consoleLinkTable, row)) return 'forged';
  const { digest: _, ...link } = consoleLinkTable.read(row);
  const leftMs = link.expiresAt - now;
  return leftMs > 0 && leftMs <= AHEAD_MS_MAX ? link : undefined;
}

/** The valid link of a code, which is deleted: of concurrent callers only one gets it. */
export function* redeemLink(digest: string, macs: RowMacs, now: number): Work<ConsoleLink | undefined> {
  const link = yield* findLink(digest, macs, now);
  return typeof link === 'object' && (yield* execute(DELETE, digest)) === 1 ? link : undefined;
}

/** Whether there are expired links. */
export function* hasExpiredLinks(now: number): Work<boolean> {
  return (yield* all(ANY_EXPIRED, now)).length > 0;
}

/** Deletes expired links. Returns how many. */
export function deleteExpiredLinks(now: number): Work<number> {
  return execute(DELETE_EXPIRED, now);
}
