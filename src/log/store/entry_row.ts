import { type Revision, type StoredId, type Uuid, uuidText } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { type Change, type SequencedChange, TOUCHED } from '../../model/log/change.ts';
import { eventNumber, eventNumbered } from '../../model/log/event.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { first, type Long, type SqlValue, type Statement, type Work } from '../../sql/transaction_work.ts';
import type { EntryValue } from '../chain.ts';

/**
 * A stored entry: its columns by name, in the order that its tag covers. In a realm log: `realm_id`, `seq`,
 * `event`, `user_id`, `record_id`, `revision`, `members`, `actor`, `request_id`, `at`, `address`, `detail`,
 * `personal`; in the installation log: `seq`, `id`, `action`, `actor`, `object`, `realm_id`, `user_id`,
 * `address`, `request_id`, `detail`, `at`. The tag covers values, independent of their encoding in the database; of `detail` and
 * `personal` in a realm log the stored bytes, which are the same on every engine.
 */
export interface StoredEntry {
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly columns: Readonly<Record<string, EntryValue>>;
  /** Null if it was removed. */
  readonly tag: Uint8Array | null;
}

/**
 * The columns of an entry that the feed reports, besides its realm. `e` is the row of the entry, and `h` the row that holds
 * what its run has in common.
 *
 * A run is consecutive entries of one commit about one user, or about none, with one origin. The last entry of a run holds
 * these columns for all of them, and for the index of user_id; in the others they are null.
 */
const changeColumns = (e: string, h: string) =>
  `${e}seq, ${e}event, ${e}record_id, ${e}revision, ${e}members, ${h}user_id, ${h}at, ${h}actor, ${h}request_id, ${h}address`;
const entryColumnNames = (e: string, h: string) =>
  `${changeColumns(e, h)}, ${e}detail, ${e}personal, ${e}tag`;

export const CHANGE_COLUMNS = changeColumns('', '');
export const ENTRY_COLUMNS = entryColumnNames('', '');

/** The columns that the last entry of a run holds. */
interface RunColumns {
  readonly user_id: StoredId | null;
  readonly at: Long | null;
  readonly actor: string | null;
  readonly request_id: string | null;
  readonly address: string | null;
}

export interface ChangeRow extends RunColumns {
  readonly seq: Long;
  readonly event: number;
  readonly record_id: StoredId | null;
  readonly revision: Uint8Array;
  readonly members: string | null;
}

export interface EntryRow extends ChangeRow {
  readonly detail: Uint8Array | null;
  readonly personal: Uint8Array | null;
  readonly tag: Uint8Array | null;
}

/** A log entry as the tag covers it. */
export interface SequencedEntry {
  readonly change: SequencedChange;
  readonly detail: Uint8Array | null;
  /** Encrypted. */
  readonly personal: Uint8Array | null;
}

/** The columns of an entry by name, in the order of its tag. */
export function entryColumns({ change, detail, personal }: SequencedEntry): StoredEntry['columns'] {
  const { realm, seq, event, user, id, revision, members, actor, requestId, at, address } = change;
  return {
    realm_id: realm,
    seq,
    event,
    user_id: user ?? null,
    record_id: id,
    revision,
    members: members.join(' '),
    actor,
    request_id: requestId ?? null,
    at,
    address: address ?? null,
    detail,
    personal,
  };
}

/** The statement that stores an entry, by the text of an insert. `next`: the change after it in the same commit. */
export function insertEntry(
  { change, detail, personal }: SequencedEntry,
  next: Change | undefined,
  tag: Uint8Array | null,
  text: string,
): Statement {
  const { realm, seq, event, user, id, revision, members, at, actor, requestId, address } = change;
  const names = members.join(' ');
  const values: SqlValue[] = [
    ...[realm, seq, eventNumber(event)],
    ...[id === (user ?? realm) ? null : id, Uint8Array.fromHex(revision)],
    names === impliedMembers(event) ? null : names,
    ...(isRunEnd(change, next) ? [user ?? null, at, actor, requestId ?? null, address ?? null] : IN_RUN),
    ...[detail, personal, tag],
  ];
  return { text, values };
}

const IN_RUN: readonly null[] = [null, null, null, null, null];

function isRunEnd(change: SequencedChange, next: Change | undefined): boolean {
  if (!next || change.seq % LIMITS.logRunEntriesMax === 0) return true;
  return IN_COMMON.some((name) => change[name] !== next[name]);
}

const IN_COMMON = ['user', 'at', 'actor', 'requestId', 'address'] as const;

/** The members of an entry without any. */
function impliedMembers(event: string): string {
  return event.endsWith('.updated') ? TOUCHED.join(' ') : '';
}

/** The columns that the run of an entry has in common. Parameters: realm, the sequence number of an entry before its end. */
export const runEndText = (dialect: Dialect) => `select user_id, at, actor, request_id, address from log_entry
  where realm_id = ${dialect.realm('?')} and seq > ? and at is not null order by seq limit 1`;

/** The changes in rows of a realm, which are in order. `runEnd`: runEndText. */
export function* changesIn(realm: Uuid, rows: readonly ChangeRow[], runEnd: string): Work<SequencedChange[]> {
  return (yield* completed(realm, rows, runEnd)).map((row) => changeIn(realm, row));
}

/** The log entries in rows of a realm, which are in order. `runEnd`: runEndText. */
export function* entriesIn(realm: Uuid, rows: readonly EntryRow[], runEnd: string): Work<StoredEntry[]> {
  return (yield* completed(realm, rows, runEnd)).map((row) => entryIn(realm, row));
}

/** Only tampering leaves an entry that is in no run. */
const NO_RUN: RunColumns = { user_id: null, at: null, actor: null, request_id: null, address: null };

/** Rows, from the last one on, with the columns that the end of their run holds. */
function* completed<R extends ChangeRow>(
  realm: Uuid,
  rows: readonly R[],
  runEnd: string,
): Work<readonly R[]> {
  const found: R[] = [];
  let end = NO_RUN;
  let following = 0;
  for (const row of rows.toReversed()) {
    const seq = Number(row.seq);
    if (row.at !== null) end = row;
    else if (following !== seq + 1) end = (yield* first<RunColumns>(runEnd, realm, seq)) ?? NO_RUN;
    following = seq;
    found.push(inRun(row, end));
  }
  return found.reverse();
}

/** Tampering can give an entry inside a run values of its own. They are returned, so that the entry does not match its tag. */
function inRun<R extends ChangeRow>(row: R, end: RunColumns): R {
  return {
    ...row,
    user_id: row.user_id ?? end.user_id,
    at: row.at ?? end.at,
    actor: row.actor ?? end.actor,
    request_id: row.request_id ?? end.request_id,
    address: row.address ?? end.address,
  };
}

/** Which runs of a user are read. `seq` is the last entry of a run. */
const RUNS = { after: 'seq > ?3 order by seq', before: 'seq < ?3 order by seq desc' };

/**
 * Entries of one user by its index, with the others of their runs. Parameters: realm, user, a sequence number, the number of
 * runs. The index is named, because an engine without statistics would read all entries of the realm.
 */
export function userEntriesText(
  which: keyof typeof RUNS,
  columns: 'change' | 'entry',
  { id, realm, lists }: Dialect,
): string {
  const runs = `select seq, user_id, at, actor, request_id, address
    from log_entry${lists.indexHint('log_entry_of_user')}
    where realm_id = ${realm('?1')} and user_id = ${id('?2')} and ${RUNS[which]} limit ?4`;
  const previousRun = `select p.seq from log_entry p
    where p.realm_id = ${realm('?1')} and p.seq < h.seq and p.at is not null order by p.seq desc limit 1`;
  return `select ${(columns === 'change' ? changeColumns : entryColumnNames)('e.', 'h.')}
    from (${runs}) h cross join log_entry e
    where e.realm_id = ${realm('?1')} and e.seq <= h.seq and e.seq > coalesce((${previousRun}), 0)`;
}

/** Rows in the order of their sequence numbers. */
export function inOrder<R extends ChangeRow>(rows: readonly R[]): readonly R[] {
  return rows.toSorted((one, other) => Number(one.seq) - Number(other.seq));
}

/** The log entry of a complete row. */
export function entryIn(realm: Uuid, row: EntryRow): StoredEntry {
  const change = changeIn(realm, row);
  const { detail, personal, tag } = row;
  return { seq: change.seq, at: change.at, columns: entryColumns({ change, detail, personal }), tag };
}

/** The change of a complete row. */
export function changeIn(realm: Uuid, row: ChangeRow): SequencedChange {
  const event = eventNumbered(row.event);
  const user = row.user_id ? uuidText(row.user_id) : undefined;
  const members = row.members ?? impliedMembers(event);
  return {
    ...{ event, realm, user, id: row.record_id ? uuidText(row.record_id) : (user ?? realm) },
    revision: row.revision.toHex() as Revision,
    members: members === '' ? [] : members.split(' '),
    actor: row.actor ?? '',
    requestId: row.request_id ?? undefined,
    address: row.address ?? undefined,
    at: Number(row.at),
    seq: Number(row.seq),
  };
}
