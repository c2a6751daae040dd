import { NIL_UUID, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import type { ChangeEntry } from '../../model/log/change.ts';
import { user } from '../../model/resources.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { actTable, logEntryTable } from '../../sql/tables/realm_data.ts';
import { COUNT_COLUMNS, countChanges, NO_COUNTS } from '../../sql/tables/record_counts.ts';
import { executeAll, first, type Long, type Statement, type Work } from '../../sql/transaction_work.ts';
import { type Chain, type EntryValue, resumeChain, startChain } from '../chain.ts';
import type { LogKeys } from '../keys.ts';
import { entryColumns, insertEntry, type SequencedEntry } from './entry_row.ts';
import { openRowMacs } from './row_macs.ts';
import { openUserEncryption } from './user_keys.ts';

const TEXTS = {
  settle: 'update realm_clock set tag = ?, entries = ? where realm_id = ?',
  begin: `update realm_clock set anchor_seq = ?, anchor_tag = ?, anchor_entries = 0, anchor_mac = ?
    where realm_id = ?`,
  insertAct: actTable.insert,
};

/** Every statement that writes the log. */
export const logTexts = (dialect: Dialect) => ({
  ...TEXTS,
  advance: `insert into realm_clock (realm_id, seq, moved, ${COUNT_COLUMNS.join(', ')})
    values (?1, ?2, ${dialect.clockOrder.now}${', ?'.repeat(COUNT_COLUMNS.length)})
    on conflict (realm_id) do update set moved = excluded.moved,
      ${['seq', ...COUNT_COLUMNS].map((name) => `${name} = realm_clock.${name} + excluded.${name}`).join(', ')}
    returning seq, tag, entries`,
  insertEntry: logEntryTable.insert(dialect),
});

interface ClockRow {
  readonly seq: Long;
  readonly tag: Uint8Array | null;
  readonly entries: Long | null;
}

export type AuditLog = ReturnType<typeof openAuditLog>;

/**
 * The log of each realm and of the installation. Entries are written by the last statements of a transaction, in the order
 * of its clocks; the tag of each entry includes the previous one.
 */
export function openAuditLog(dialect: Dialect) {
  const sql = logTexts(dialect);
  const rowMacs = openRowMacs();
  let keyed:
    | { readonly keys: LogKeys; readonly encryptionOf: ReturnType<typeof openUserEncryption> }
    | undefined;

  /**
   * Advances a log's clock by its new entries, and by what they add to each of COUNT_COLUMNS. Returns the sequence number before,
   * and the chain.
   */
  function* advanceClock(
    log: Uuid,
    count: number,
    recordCounts: readonly number[],
    at: number,
  ): Work<ClockStep> {
    const clock = (yield* first<ClockRow>(sql.advance, log, count, ...recordCounts)) as ClockRow;
    const before = Number(clock.seq) - count;
    if (!keyed) return { before, chain: undefined, auditEntries: [] };
    if (clock.tag === null) return { before, ...(yield* beginChain(keyed.keys, { log, at }, before)) };
    const end = { seq: before, tag: clock.tag, entries: Number(clock.entries) };
    return { before, chain: resumeChain(keyed.keys, end), auditEntries: [] };
  }

  /** Writes the entries of a realm. Returns audit entries about the chain itself. */
  function* writeRealm(realm: Uuid, entries: readonly ChangeEntry[]): Work<readonly AuditEntry[]> {
    const reported = withoutErased(entries);
    // Before the clock, whose result a remote engine has to wait for.
    const encryption = keyed && (yield* keyed.encryptionOf(realm, reported));
    const at = entries[0]?.change.at ?? 0;
    const step = yield* advanceClock(realm, entries.length, countChanges(entries), at);
    const { before, chain, auditEntries } = step;
    const statements = reported.map(({ change, detail, personal }, index): Statement => {
      const seq = before + index + 1;
      const encrypted = personal && encryption?.encrypt(change, personal);
      const entry: SequencedEntry = {
        change: { ...change, seq },
        detail: (keyed && detail) ?? null,
        personal: encrypted ?? null,
      };
      const tag = chain ? chain.next(seq, Object.values(entryColumns(entry))) : null;
      return insertEntry(entry, reported[index + 1]?.change, tag, sql.insertEntry);
    });
    yield* writeRows(realm, [...(encryption?.statements ?? []), ...statements], chain);
    return auditEntries;
  }

  function* writeAuditEntries(auditEntries: readonly AuditEntry[]): Work<void> {
    if (!keyed) return;
    const at = auditEntries[0]?.at ?? 0;
    const { before, chain } = yield* advanceClock(NIL_UUID, auditEntries.length, NO_COUNTS, at);
    const statements = auditEntries.map((auditEntry, index) =>
      insertAuditEntry(auditEntry, before + index + 1, chain),
    );
    yield* writeRows(NIL_UUID, statements, chain);
  }

  return {
    /** The codes of rows outside of the log, under the same keys. */
    rowMacs,
    /** From now on entries have tags, and hold the record before and after. Without keys there are no audit entries. */
    useKeys(keys: LogKeys): void {
      rowMacs.useKeys(keys);
      keyed = { keys, encryptionOf: openUserEncryption(keys, dialect) };
    },
    /** Writes entries: advances each clock once, then inserts the rows with their sequence numbers. */
    *write(entries: readonly ChangeEntry[], auditEntries: readonly AuditEntry[] = []): Work<void> {
      // The installation's clock first: clocks are locked in one order (docs/decisions/0008-postgresql.md).
      if (auditEntries.length > 0) yield* writeAuditEntries(auditEntries);
      const more: AuditEntry[] = [];
      for (const [realm, realmEntries] of Map.groupBy(entries, ({ change }): Uuid => change.realm)) {
        more.push(...(yield* writeRealm(realm, realmEntries)));
      }
      if (more.length > 0) yield* writeAuditEntries(more);
    },
  };
}

function insertAuditEntry(auditEntry: AuditEntry, seq: number, chain: Chain | undefined): Statement {
  const columns = actTable.values({ ...auditEntry, seq, detail: JSON.stringify(auditEntry.detail) });
  return { text: TEXTS.insertAct, values: [...columns, chain ? chain.next(seq, columns) : null] };
}

/** Writes rows and the end of the chain in as few round trips as possible. */
function* writeRows(log: Uuid, statements: readonly Statement[], chain: Chain | undefined): Work<void> {
  const last: readonly Statement[] = chain
    ? [{ text: TEXTS.settle, values: [chain.tag, chain.entries, log] }]
    : [];
  const batch = [...statements, ...last];
  for (let start = 0; start < batch.length; start += LIMITS.insertsPerBatchMax) {
    yield* executeAll(batch.slice(start, start + LIMITS.insertsPerBatchMax));
  }
}

interface ClockStep {
  readonly before: number;
  /** Undefined without keys. */
  readonly chain: Chain | undefined;
  readonly auditEntries: readonly AuditEntry[];
}

/** The event of an erased user. */
const ERASED = `${user.name}.erased`;

/** Drops the personal values of users that one of the entries erases, in any order. */
function withoutErased(entries: readonly ChangeEntry[]): readonly ChangeEntry[] {
  const erased = new Set<Uuid | undefined>();
  for (const { change } of entries) if (change.event === ERASED) erased.add(change.user);
  if (erased.size === 0) return entries;
  return entries.map((entry) => (erased.has(entry.change.user) ? { ...entry, personal: undefined } : entry));
}

/**
 * Begins the chain of a log after the sequence number `before`, which an audit entry records, so that a restarted log is visible.
 */
function* beginChain(
  keys: LogKeys,
  { log, at }: { readonly log: Uuid; readonly at: number },
  before: number,
): Work<Omit<ClockStep, 'before'>> {
  const { chain, anchor } = startChain(keys, log, before);
  yield* executeAll([{ text: TEXTS.begin, values: [anchor.seq, anchor.tag, anchor.mac, log] }]);
  if (log === NIL_UUID) return { chain, auditEntries: [] };
  const origin = { actor: 'log', address: undefined, requestId: undefined };
  return {
    chain,
    auditEntries: [{ action: 'log.begun', ...origin, realm: log, detail: { after: before }, at }],
  };
}

const LONGS: ReadonlySet<string> = new Set(['seq', 'at']);

/** The columns of a row by name, with the values that were tagged. */
export function namedColumns(
  row: Readonly<Record<string, EntryValue>>,
): Readonly<Record<string, EntryValue>> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, LONGS.has(name) ? Number(value) : value]),
  );
}
