import { Fault } from '../../model/fault.ts';
import { NIL_UUID, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditAction, AuditEntry } from '../../model/log/audit_entry.ts';
import type { Erasure } from '../../model/log/erasure.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { actTable, erasureTable, realmClockTable } from '../../sql/tables/realm_data.ts';
import {
  all,
  execute,
  executeAll,
  first,
  type Long,
  type Row,
  type Work,
  type WorkResult,
} from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import {
  type Anchor,
  type ChainLink,
  type EntryValue,
  isAnchorValid,
  resumeChain,
  sealAnchor,
} from '../chain.ts';
import type { LogKeys, Person } from '../keys.ts';
import {
  ENTRY_COLUMNS,
  type EntryRow,
  entriesIn,
  entryIn,
  inOrder,
  runEndText,
  type StoredEntry,
  userEntriesText,
} from './entry_row.ts';
import { type AuditLog, namedColumns } from './log.ts';
import { openUserSalts } from './user_keys.ts';

/** The head of the log of a realm, or of the installation (nil UUID). */
export interface LogHead {
  readonly log: Uuid;
  /** The last assigned sequence number. */
  readonly seq: number;
  /** Undefined for a log without tagged entries. */
  readonly chain: { readonly end: ChainLink; readonly anchor: Anchor } | undefined;
}

/** The log of the installation. Its rows name it, so that they are on one node of a cluster. */
const FROM_ACT = `from act where log_id = '${NIL_UUID}'`;

/** Every statement that reads or trims a log, but those about single users. */
const TEXTS = {
  heads: `${realmClockTable.select} where realm_id > ? order by realm_id limit ?`,
  oneHead: `${realmClockTable.select} where realm_id = ?`,
  acts: `select ${actTable.names} ${FROM_ACT} and seq > ? order by seq limit ?`,
  act: `select 1 ${FROM_ACT} and id = ?`,
  actsOf: `select ${actTable.names} ${FROM_ACT}
    and realm_id = ? and user_id = ? and seq > ? order by seq limit ?`,
  newestActsOf: `select ${actTable.names} ${FROM_ACT}
    and realm_id = ? and user_id = ? and action = ? order by seq desc limit ?`,
  erasure: `${erasureTable.select} where realm_id = ? and user_id = ?`,
  unreported: `${erasureTable.select}
    where told_at is null and (realm_id, user_id) > (?, ?) order by realm_id, user_id limit ?`,
  /** A user that was erased again since then is reported again. */
  markReported: 'update erasure set told_at = ? where realm_id = ? and user_id = ? and at = ?',
  removeActs: `delete ${FROM_ACT} and seq <= ?`,
  moveAnchor: `update realm_clock set anchor_seq = ?, anchor_tag = ?, anchor_entries = ?, anchor_mac = ?
    where realm_id = ?`,
};

/** Every statement that reads or trims the log. */
export const logReadingTexts = (dialect: Dialect) => ({
  ...TEXTS,
  entries: `select ${ENTRY_COLUMNS} from log_entry where realm_id = ${dialect.realm('?')} and seq > ? order by seq limit ?`,
  removeEntries: `delete from log_entry where realm_id = ${dialect.realm('?')} and seq > ? and seq <= ?`,
  userEntries: userEntriesText('after', 'entry', dialect),
  runEnd: runEndText(dialect),
});

type Texts = ReturnType<typeof logReadingTexts>;

/** Stores the audit logs: one per realm, and one of the installation. */
export function openLogStore({ read, write }: Transactions, log: AuditLog, dialect: Dialect) {
  const sql = logReadingTexts(dialect);
  const findUserSalts = openUserSalts(dialect);
  let keys: LogKeys | undefined;
  /** Audit entries whose commit may or may not have happened. */
  const doubtful = new WeakSet<AuditEntry>();

  return {
    /** From now on entries are tagged with these keys and contain values before and after. */
    useKeys(newKeys: LogKeys) {
      keys = newKeys;
      log.useKeys(newKeys);
    },
    /**
     * Appends entries to the installation log. Resolves when the commit is on disk. Rejects with Fault
     * `unknown_outcome` if that is unknown: the same entries may be appended again, and those with an ID are
     * written once.
     */
    async append(auditEntries: readonly AuditEntry[]): Promise<void> {
      try {
        await write([NIL_UUID], () => missingEntries(auditEntries, doubtful));
      } catch (error) {
        if (error instanceof Fault && error.code === 'unknown_outcome') {
          for (const auditEntry of auditEntries) doubtful.add(auditEntry);
        }
        throw error;
      }
    },
    /** The heads of logs after `after`, ordered by realm, at most `limit`; the installation log is first. */
    heads: (after: Uuid | undefined, limit: number) =>
      read(function* () {
        // The nil UUID is the first UUID, so `realm_id > ?` cannot select it: the first page reads it separately.
        const first = after === undefined ? yield* headOf(NIL_UUID) : undefined;
        const rest = yield* all(TEXTS.heads, after ?? NIL_UUID, limit - (first ? 1 : 0));
        return [...(first ? [first] : []), ...rest.map(headFrom)];
      }),
    head: (logId: Uuid) => read(() => headOf(logId)),
    /** The entries of a log after a sequence number, oldest first, at most `limit`. */
    entries: (logId: Uuid, after: number, limit: number) =>
      read(() => entriesAfter(sql, logId, after, limit)),

    /** The entries that concern a user, in the log of its realm or in the installation log. */
    entriesOf: ({ realm, user }: Person, which: 'realm' | 'installation', after: number, limit: number) =>
      read(function* (): Work<readonly StoredEntry[]> {
        if (which === 'installation')
          return (yield* all<ActRow>(TEXTS.actsOf, realm, user, after, limit)).map(entryFrom);
        const rows = yield* all<EntryRow>(sql.userEntries, realm, user, after, limit);
        const entries = inOrder(rows).map((row) => entryIn(realm, row));
        return entries.filter(({ seq }) => seq > after).slice(0, limit);
      }),

    /** The newest entries of this action that concern a user, in the installation log, newest first. */
    newestActsOf: ({ realm, user }: Person, action: AuditAction, limit: number) =>
      read(function* () {
        return (yield* all<ActRow>(TEXTS.newestActsOf, realm, user, action, limit)).map(entryFrom);
      }),

    /** The stored values from which the encryption keys of these users are derived; erased users are absent. */
    userKeys: (realm: Uuid, users: readonly Uuid[]) => read(() => findUserSalts(realm, users)),
    /**
     * Removes the oldest tagged entries older than `before`, at most LIMITS.cascadeRecordsMax and never the
     * newest of them, and moves the anchor. Returns the number of removed entries. Rejects if one of them is not what was tagged.
     */
    trim: (logId: Uuid, before: number) =>
      write([logId], function* () {
        const head = yield* headOf(logId);
        return keys && head ? yield* trimLog(keys, sql, head, before) : { value: 0, keep: false };
      }),
    /** The erasure of a user; undefined if it was not erased. */
    erasure: ({ realm, user }: Person) =>
      read(function* () {
        const row = yield* first(TEXTS.erasure, realm, user);
        return row && erasureFrom(row);
      }),
    /** The erasures after that of `after`, ordered by realm and user, that are not marked as reported. */
    unreportedErasures: (after: Person | undefined, limit: number) =>
      read(function* () {
        const position = [after?.realm ?? NIL_UUID, after?.user ?? NIL_UUID];
        return (yield* all(TEXTS.unreported, ...position, limit)).map(erasureFrom);
      }),
    /** Marks erasures as reported. */
    markErasuresReported: (erasures: readonly Erasure[], at: number) =>
      write('instance', function* () {
        yield* executeAll(
          erasures.map((erasure) => ({
            text: TEXTS.markReported,
            values: [at, erasure.realm, erasure.user, erasure.at],
          })),
        );
        return { value: undefined, keep: true, rows: erasures.length };
      }),
  };
}

export type LogStore = ReturnType<typeof openLogStore>;

/** What a verification reads. */
export type LogReader = Pick<LogStore, 'heads' | 'head' | 'entries' | 'entriesOf' | 'userKeys'>;

function* entriesAfter(sql: Texts, logId: Uuid, after: number, limit: number): Work<readonly StoredEntry[]> {
  if (logId === NIL_UUID) return (yield* all<ActRow>(TEXTS.acts, after, limit)).map(entryFrom);
  const rows = yield* all<EntryRow>(sql.entries, logId, after, limit);
  return yield* entriesIn(logId, rows, sql.runEnd);
}

/**
 * Writes audit entries without other changes. It waits for a running commit with an unknown outcome, because both lock the
 * clock of the installation, and then checks which of the entries exist.
 */
function* missingEntries(
  auditEntries: readonly AuditEntry[],
  doubtful: WeakSet<AuditEntry>,
): Work<WorkResult<undefined>> {
  const missing: AuditEntry[] = [];
  for (const auditEntry of auditEntries) {
    const isStored =
      doubtful.has(auditEntry) && auditEntry.id !== undefined && (yield* first(TEXTS.act, auditEntry.id));
    if (!isStored) missing.push(auditEntry);
  }
  return { value: undefined, keep: missing.length > 0, auditEntries: missing };
}

function erasureFrom(row: Row): Erasure {
  const { toldAt: _, ...erasure } = erasureTable.read(row);
  return erasure;
}

function* headOf(logId: Uuid): Work<LogHead | undefined> {
  const row = yield* first(TEXTS.oneHead, logId);
  return row && headFrom(row);
}

/** A tag that was removed by tampering: the chain stays a chain, and its verification fails. */
const MISSING_TAG = new Uint8Array();

function headFrom(row: Row): LogHead {
  const { realm: log, seq, tag, anchorTag, anchorMac, ...clock } = realmClockTable.read(row);
  if (!tag && !anchorTag && !anchorMac) return { log, seq, chain: undefined };
  return {
    log,
    seq,
    chain: {
      end: { seq, tag: tag ?? MISSING_TAG, entries: clock.entries ?? 0 },
      anchor: {
        seq: clock.anchorSeq ?? 0,
        tag: anchorTag ?? MISSING_TAG,
        entries: clock.anchorEntries ?? 0,
        mac: anchorMac ?? MISSING_TAG,
      },
    },
  };
}

/** A row of the log of the installation. */
type ActRow = Readonly<Record<string, EntryValue>> & {
  readonly seq: Long;
  readonly at: Long;
  readonly tag: Uint8Array | null;
};

function entryFrom({ tag, ...row }: ActRow): StoredEntry {
  return { seq: Number(row.seq), at: Number(row.at), columns: namedColumns(row), tag };
}

/**
 * Deletes entries of a log that are older than `before`, oldest first, and moves the anchor after them. At most
 * LIMITS.cascadeRecordsMax. The newest expired entry stays: it proves that the earlier ones had expired. Throws if an entry does
 * not match its tag, so that retention never deletes evidence of tampering.
 */
function* trimLog(
  keys: LogKeys,
  sql: Texts,
  { log: logId, chain }: LogHead,
  before: number,
): Work<WorkResult<number>> {
  if (!chain) return trimmedRows(0);
  if (!isAnchorValid(keys, logId, chain.anchor)) throw new Error('the start of a log was tampered with');
  const oldest = yield* entriesAfter(sql, logId, chain.anchor.seq, LIMITS.cascadeRecordsMax + 1);
  const firstRecent = oldest.findIndex(({ seq, at }) => seq > chain.end.seq || at >= before);
  const expired = (firstRecent < 0 ? oldest : oldest.slice(0, firstRecent)).slice(0, -1);
  const end = endOf(keys, chain.anchor, expired);
  if (expired.length === 0) return trimmedRows(0);
  const anchor = sealAnchor(keys, logId, end);
  if (logId === NIL_UUID) yield* execute(TEXTS.removeActs, anchor.seq);
  else yield* execute(sql.removeEntries, logId, chain.anchor.seq, anchor.seq);
  yield* execute(TEXTS.moveAnchor, anchor.seq, anchor.tag, anchor.entries, anchor.mac, logId);
  return trimmedRows(expired.length);
}

function trimmedRows(rows: number): WorkResult<number> {
  return { value: rows, keep: rows > 0, rows };
}

/** The end of the chain after these entries. Throws if an entry does not match its tag. */
function endOf(keys: LogKeys, anchor: ChainLink, entries: readonly StoredEntry[]): ChainLink {
  const chain = resumeChain(keys, anchor);
  for (const { seq, columns, tag } of entries) {
    const expected = chain.next(seq, Object.values(columns));
    if (!tag || Buffer.compare(tag, expected) !== 0)
      throw new Error('an expired entry of a log was tampered with');
  }
  return chain;
}
