import { type Chain, type EntryColumns, resumeChain, startChain } from '../../audit/chain.ts';
import type { LogKeys } from '../../audit/log_keys.ts';
import type { EntryValue } from '../../audit/port.ts';
import type { AuditEntry } from '../../domain/audit_entry.ts';
import { NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { user } from '../../domain/resources.ts';
import type { ClockOrder, Dialect } from '../dialect.ts';
import {
  all,
  executeAll,
  first,
  type Long,
  type Statement,
  type Work,
  type WorkResult,
} from '../transaction_work.ts';
import type { ChangeEntry } from './entry.ts';
import { openUserKeys, type UserKeys } from './user_keys.ts';

/**
 * The log of each realm and of the installation. Entries are written as the last statements of a transaction, in the order
 * of its clocks; each gets a tag over the one before it.
 */
export interface AuditLog {
  /**
   * From here on entries are tagged, and hold the record before and after. Without keys they are as those of release 0.1.0,
   * which logged no acts.
   */
  useKeys(keys: LogKeys): void;
  /** Gives entries and acts their places: one step of each clock, then the rows. */
  write(entries: readonly ChangeEntry[], auditEntries?: readonly AuditEntry[]): Work<void>;
  /** Continues the chain of a realm towards its last entry. Returns whether there is more to do. */
  catchUp(realm: Uuid, at: number): Work<WorkResult<boolean>>;
}

const advanceBy = ({
  now,
}: ClockOrder): string => `insert into realm_clock (realm_id, seq, moved) values (?, ?, ${now})
  on conflict (realm_id) do update set seq = realm_clock.seq + excluded.seq, moved = excluded.moved
  returning seq, tagged_seq, tag, entries`;
const CLOCK = 'select seq, tagged_seq, tag, entries from realm_clock where realm_id = ?';
const SETTLE = 'update realm_clock set tagged_seq = ?, tag = ?, entries = ? where realm_id = ?';
const BEGIN = `update realm_clock set anchor_seq = ?, anchor_tag = ?, anchor_entries = 0, anchor_mac = ?
  where realm_id = ?`;
/** The columns of a change in the order in which they are tagged. */
export const CHANGE_COLUMNS = `realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at, address,
  detail, personal`;
export const ACT_COLUMNS =
  'seq, id, action, actor, object, realm_id, user_id, address, request_id, detail, at';
const UNTAGGED = `select ${CHANGE_COLUMNS} from change where realm_id = ? and seq > ? and seq <= ? order by seq`;
const INSERT = `insert into change (${CHANGE_COLUMNS}, tag) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const INSERT_ACT = `insert into act (${ACT_COLUMNS}, tag) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const ADOPT = 'update change set tag = ? where realm_id = ? and seq = ?';

/** So many rows are written with one wait. */
const TOGETHER = 100;

interface ClockRow {
  readonly seq: Long;
  readonly tagged_seq: Long | null;
  readonly tag: Uint8Array | null;
  readonly entries: Long | null;
}

export function openAuditLog({ clockOrder: moves }: Pick<Dialect, 'clockOrder'>): AuditLog {
  const advance = advanceBy(moves);
  let keyed: { readonly keys: LogKeys; readonly userKeys: UserKeys } | undefined;

  /** Takes `count` places in a log; answers the place before them, and the chain that goes on there, if it goes so far. */
  function* advanceClock(log: Uuid, count: number, at: number): Work<ClockStep> {
    const clock = (yield* first<ClockRow>(advance, log, count)) as ClockRow;
    const before = Number(clock.seq) - count;
    if (!keyed) return { before, chain: undefined, auditEntries: [] };
    const { chain, auditEntries } = yield* continueChain(keyed.keys, { log, at }, clock, before);
    return { before, chain: chain.seq === before ? chain : undefined, auditEntries };
  }

  /** Writes the entries of a realm. Returns audit entries about the chain itself. */
  function* writeRealm(realm: Uuid, entries: readonly ChangeEntry[]): Work<readonly AuditEntry[]> {
    const { before, chain, auditEntries } = yield* advanceClock(
      realm,
      entries.length,
      entries[0]?.change.at ?? 0,
    );
    const reported = withoutErased(entries);
    const encryption = keyed && (yield* keyed.userKeys.of(realm, reported));
    let seq = before;
    const statements = reported.map(({ change, detail, personal }): Statement => {
      seq += 1;
      const secret = personal === undefined ? undefined : encryption?.encrypt(change, personal);
      const { event, user, id, revision, members, actor, requestId, at, address } = change;
      const columns: EntryColumns = [
        ...[realm, seq, event, user ?? null, id, revision, members.join(' '), actor, requestId ?? null, at],
        ...[address ?? null, (keyed && detail) ?? null, secret ?? null],
      ];
      return { text: INSERT, values: [...columns, chain ? chain.next(seq, columns) : null] };
    });
    yield* writeRows(realm, [...(encryption?.statements ?? []), ...statements], chain);
    return auditEntries;
  }

  function* writeActs(auditEntries: readonly AuditEntry[]): Work<void> {
    if (!keyed) return;
    const { before, chain } = yield* advanceClock(NIL_UUID, auditEntries.length, auditEntries[0]?.at ?? 0);
    let seq = before;
    const statements = auditEntries.map((auditEntry): Statement => {
      seq += 1;
      const columns = actColumnsOf(auditEntry, seq);
      return { text: INSERT_ACT, values: [...columns, chain ? chain.next(seq, columns) : null] };
    });
    yield* writeRows(NIL_UUID, statements, chain);
  }

  return {
    useKeys(keys) {
      keyed = { keys, userKeys: openUserKeys(keys) };
    },
    *write(entries, auditEntries = []) {
      // The installation's clock first, as its claim is (decision 0008).
      if (auditEntries.length > 0) yield* writeActs(auditEntries);
      const more: AuditEntry[] = [];
      for (const [realm, ofRealm] of Map.groupBy(entries, ({ change }): Uuid => change.realm)) {
        more.push(...(yield* writeRealm(realm, ofRealm)));
      }
      if (more.length > 0) yield* writeActs(more);
    },
    *catchUp(realm, at) {
      const clock = yield* first<ClockRow>(CLOCK, realm);
      if (!keyed || !clock) return unchanged(false);
      const { chain, auditEntries } = yield* continueChain(
        keyed.keys,
        { log: realm, at },
        clock,
        Number(clock.seq),
      );
      if (auditEntries.length === 0) return unchanged(false);
      yield* writeRows(realm, [], chain);
      return { value: chain.seq < Number(clock.seq), keep: true, auditEntries };
    },
  };
}

function actColumnsOf(auditEntry: AuditEntry, seq: number): EntryColumns {
  const { id, action, actor, object, realm, user, address, requestId, detail, at } = auditEntry;
  return [
    ...[seq, id ?? null, action, actor, object ?? null, realm ?? null, user ?? null, address ?? null],
    ...[requestId ?? null, JSON.stringify(detail), at],
  ];
}

/** Writes rows and the end of the chain in as few round trips as possible. */
function* writeRows(log: Uuid, statements: readonly Statement[], chain: Chain | undefined): Work<void> {
  const last: readonly Statement[] = chain
    ? [{ text: SETTLE, values: [chain.seq, chain.tag, chain.entries, log] }]
    : [];
  const whole = [...statements, ...last];
  for (let start = 0; start < whole.length; start += TOGETHER) {
    yield* executeAll(whole.slice(start, start + TOGETHER));
  }
}

interface ClockStep {
  readonly before: number;
  /** Undefined where entries of an older release still stand between. */
  readonly chain: Chain | undefined;
  readonly auditEntries: readonly AuditEntry[];
}

function unchanged<T>(value: T): WorkResult<T> {
  return { value, keep: false };
}

/** An event that says that a user was erased. */
const ERASED = `${user.name}.erased`;

/** Drops what entries report about the person of a user who is erased by one of them, whichever comes first. */
function withoutErased(entries: readonly ChangeEntry[]): readonly ChangeEntry[] {
  const erased = new Set<Uuid | undefined>();
  for (const { change } of entries) if (change.event === ERASED) erased.add(change.user);
  if (erased.size === 0) return entries;
  return entries.map((entry) => (erased.has(entry.change.user) ? { ...entry, personal: undefined } : entry));
}

/**
 * The chain of a log, as far towards a place as one commit brings it. It begins there where there is none. Entries that a
 * release before this one wrote have no tags: they get theirs now, as they are, LIMITS.cascadeRecordsMax at a time. Both are
 * acts, so that nobody has a log begin anew, or an entry adopted, unseen.
 */
function* continueChain(
  keys: LogKeys,
  { log, at }: { readonly log: Uuid; readonly at: number },
  clock: ClockRow,
  place: number,
): Work<{ readonly chain: Chain; readonly auditEntries: readonly AuditEntry[] }> {
  const auditEntry = (action: 'log.begun' | 'log.adopted', detail: AuditEntry['detail']): AuditEntry => ({
    ...{ action, actor: 'log', address: undefined, requestId: undefined },
    ...{ realm: log, detail, at },
  });
  if (clock.tagged_seq === null || clock.tag === null) {
    const { chain, anchor } = startChain(keys, log, place);
    yield* executeAll([{ text: BEGIN, values: [anchor.seq, anchor.tag, anchor.mac, log] }]);
    return { chain, auditEntries: log === NIL_UUID ? [] : [auditEntry('log.begun', { after: place })] };
  }
  const { tagged_seq, tag, entries } = clock;
  const chain = resumeChain(keys, { seq: Number(tagged_seq), tag, entries: Number(entries) });
  const from = chain.seq;
  if (from === place) return { chain, auditEntries: [] };
  yield* tagUntagged(log, place, chain);
  return { chain, auditEntries: [auditEntry('log.adopted', { after: from, to: chain.seq })] };
}

function* tagUntagged(log: Uuid, upTo: number, chain: Chain): Work<void> {
  const rows = yield* all<Readonly<Record<string, EntryValue>>>(
    UNTAGGED,
    log,
    chain.seq,
    Math.min(upTo, chain.seq + LIMITS.cascadeRecordsMax),
  );
  for (let start = 0; start < rows.length; start += TOGETHER) {
    yield* executeAll(
      rows.slice(start, start + TOGETHER).map((row) => {
        const columns = Object.values(namedColumns(row));
        const seq = Number(row.seq);
        return { text: ADOPT, values: [chain.next(seq, columns), log, seq] };
      }),
    );
  }
}

const LONGS: ReadonlySet<string> = new Set(['seq', 'at']);

/** The columns of a row by name, each as it was when it was tagged. */
export function namedColumns(
  row: Readonly<Record<string, EntryValue>>,
): Readonly<Record<string, EntryValue>> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, LONGS.has(name) ? Number(value) : value]),
  );
}

/** Every text of the log. */
export const logTexts = ({ clockOrder: moves }: Pick<Dialect, 'clockOrder'>): readonly string[] => [
  ...[advanceBy(moves), CLOCK, SETTLE, BEGIN, INSERT, INSERT_ACT, UNTAGGED, ADOPT],
];
