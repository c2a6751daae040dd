import { anchorAt, isAnchor } from '../audit/chain.ts';
import type { LogKeys } from '../audit/keys.ts';
import type { EntryValue, Erasure, LogHead, LogStore, StoredEntry } from '../audit/port.ts';
import type { Act } from '../domain/act.ts';
import { NIL_UUID, type Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { ACT_COLUMNS, CHANGE_COLUMNS, type Log, namedColumns } from './log.ts';
import { findSalts } from './salts.ts';
import type { Transactions } from './transactions.ts';
import { all, first, type Long, type Outcome, run, runAll, type Work } from './work.ts';

const HEAD = `realm_id, seq, tagged_seq, tag, entries, anchor_seq, anchor_tag, anchor_entries, anchor_mac
  from realm_clock`;
const HEADS = `select ${HEAD} where realm_id > ? order by realm_id limit ?`;
const ONE_HEAD = `select ${HEAD} where realm_id = ?`;
const CHANGES = `select ${CHANGE_COLUMNS}, tag from change where realm_id = ? and seq > ? order by seq limit ?`;
const ACTS = `select ${ACT_COLUMNS}, tag from act where seq > ? order by seq limit ?`;
const CHANGES_OF = `select ${CHANGE_COLUMNS}, tag from change
  where realm_id = ? and user_id = ? and seq > ? order by seq limit ?`;
const ACTS_OF = `select ${ACT_COLUMNS}, tag from act
  where realm_id = ? and user_id = ? and seq > ? order by seq limit ?`;
const OLD_CHANGES = `select seq, at, tag from change
  where realm_id = ? and seq > ? and seq < ? order by seq limit ?`;
const OLD_ACTS = 'select seq, at, tag from act where seq > ? and seq < ? order by seq limit ?';
const REMOVE_CHANGES = 'delete from change where realm_id = ? and seq <= ?';
const REMOVE_ACTS = 'delete from act where seq <= ?';
const MOVE_ANCHOR = `update realm_clock set anchor_seq = ?, anchor_tag = ?, anchor_entries = ?, anchor_mac = ?
  where realm_id = ?`;
const ERASURE = 'select at from erasure where realm_id = ? and user_id = ?';
const ERASURES = `select realm_id, user_id, at from erasure where (realm_id, user_id) > (?, ?)
  order by realm_id, user_id limit ?`;

interface HeadRow {
  readonly realm_id: Uuid;
  readonly seq: Long;
  readonly tagged_seq: Long | null;
  readonly tag: Uint8Array | null;
  readonly entries: Long | null;
  readonly anchor_seq: Long | null;
  readonly anchor_tag: Uint8Array | null;
  readonly anchor_entries: Long | null;
  readonly anchor_mac: Uint8Array | null;
}

type Row = Readonly<Record<string, EntryValue>> & {
  readonly seq: Long;
  readonly at: Long;
  readonly tag: Uint8Array | null;
};

/** The log of the installation and of every realm, to be read and kept short. */
export function openLogStore({ read, write }: Transactions, log: Log): LogStore {
  let keys: LogKeys | undefined;

  function* trimLog(which: Uuid, before: number): Work<Outcome<number>> {
    const head = yield* headOf(which);
    const { chain } = head ?? {};
    if (!chain || !keys) return { value: 0, keep: false, rows: 0 };
    if (!isAnchor(keys, which, chain.anchor))
      throw new Error('the beginning of a log was moved by a stranger');
    const rows = yield* oldest(which, chain.anchor.seq, chain.end.seq);
    const young = rows.findIndex(({ at }) => Number(at) >= before);
    const gone = young < 0 ? rows : rows.slice(0, young);
    const last = gone.at(-1);
    if (!last?.tag) return { value: 0, keep: false, rows: 0 };
    const link = { seq: Number(last.seq), tag: last.tag, entries: chain.anchor.entries + gone.length };
    const anchor = anchorAt(keys, which, link);
    if (which === NIL_UUID) yield* run(REMOVE_ACTS, anchor.seq);
    else yield* run(REMOVE_CHANGES, which, anchor.seq);
    yield* run(MOVE_ANCHOR, anchor.seq, anchor.tag, anchor.entries, anchor.mac, which);
    return { value: gone.length, keep: true, rows: gone.length };
  }

  return {
    keep(given) {
      keys = given;
      log.keep(given);
    },
    note: (acts) => write([NIL_UUID], () => nothingBut(acts)),
    heads: (after, limit) =>
      read(function* () {
        // Nothing sorts before the nil UUID but what is no UUID at all: the first page has its own text.
        const first = after === undefined ? yield* headOf(NIL_UUID) : undefined;
        const rest = yield* all<HeadRow>(HEADS, after ?? NIL_UUID, limit - (first ? 1 : 0));
        return [...(first ? [first] : []), ...rest.map(headFrom)];
      }),
    head: (which) => read(() => headOf(which)),
    entries: (which, after, limit) =>
      read(function* () {
        const rows =
          which === NIL_UUID
            ? yield* all<Row>(ACTS, after, limit)
            : yield* all<Row>(CHANGES, which, after, limit);
        return rows.map(entryFrom);
      }),
    entriesOf: ({ realm, user }, log, after, limit) =>
      read(function* () {
        const rows = yield* all<Row>(log === 'realm' ? CHANGES_OF : ACTS_OF, realm, user, after, limit);
        return rows.map(entryFrom);
      }),
    salts: (realm, users) => read(() => findSalts(realm, users)),
    trim: (which, before) => write([which], () => trimLog(which, before)),
    erasure: ({ realm, user }) =>
      read(function* () {
        const row = yield* first<{ readonly at: Long }>(ERASURE, realm, user);
        return row && { realm, user, at: Number(row.at) };
      }),
    erasures: (after, limit) =>
      read(function* () {
        const rows = yield* all<{ realm_id: Uuid; user_id: Uuid; at: Long }>(
          ERASURES,
          after.realm,
          after.user,
          limit,
        );
        return rows.map(
          ({ realm_id, user_id, at }): Erasure => ({ realm: realm_id, user: user_id, at: Number(at) }),
        );
      }),
  };
}

/** The work of who writes acts alone: nothing of its own. */
function* nothingBut(acts: readonly Act[]): Work<Outcome<undefined>> {
  yield* runAll([]);
  return { value: undefined, keep: true, acts };
}

function* headOf(which: Uuid): Work<LogHead | undefined> {
  const row = yield* first<HeadRow>(ONE_HEAD, which);
  return row && headFrom(row);
}

type OldRow = { readonly seq: Long; readonly at: Long; readonly tag: Uint8Array | null };

/** The oldest entries behind a place, none of them the last one that is tagged. */
function oldest(which: Uuid, after: number, end: number): Work<readonly OldRow[]> {
  const most = LIMITS.cascadeRecordsMax;
  return which === NIL_UUID
    ? all<OldRow>(OLD_ACTS, after, end, most)
    : all<OldRow>(OLD_CHANGES, which, after, end, most);
}

function headFrom(row: HeadRow): LogHead {
  const { realm_id: log, tag, anchor_tag, anchor_mac } = row;
  const seq = Number(row.seq);
  if (!tag || !anchor_tag || !anchor_mac) return { log, seq, chain: undefined };
  return {
    log,
    seq,
    chain: {
      end: { seq: Number(row.tagged_seq), tag, entries: Number(row.entries) },
      anchor: {
        seq: Number(row.anchor_seq),
        tag: anchor_tag,
        entries: Number(row.anchor_entries),
        mac: anchor_mac,
      },
    },
  };
}

function entryFrom({ tag, ...row }: Row): StoredEntry {
  return { seq: Number(row.seq), at: Number(row.at), columns: namedColumns(row), tag };
}

/** Every text that reads the log or keeps it short. */
export const LOG_READING_TEXTS: readonly string[] = [
  ...[HEADS, ONE_HEAD, CHANGES, ACTS, CHANGES_OF, ACTS_OF, OLD_CHANGES, OLD_ACTS],
  ...[REMOVE_CHANGES, REMOVE_ACTS, MOVE_ANCHOR, ERASURE, ERASURES],
];
