import { isChainStart } from '../../log/chain.ts';
import type { LogFinding } from '../../log/chain_verifier.ts';
import type { LogKeys } from '../../log/keys.ts';
import { unpackDetail } from '../../log/packed_detail.ts';
import type { StoredEntry } from '../../log/store/entry_row.ts';
import type { LogHead, LogReader } from '../../log/store/reading.ts';
import { openPersonalValues, pagesAfter } from '../../log/stored_entries.ts';
import { headsOf } from '../../log/verify.ts';
import { attempt } from '../../model/attempt.ts';
import { NIL_UUID, type Uuid } from '../../model/id.ts';
import { eventResource } from '../../model/log/event.ts';
import { describeForgedRow } from '../../model/log/forged_row.ts';
import { pagesOf } from '../../model/pages.ts';
import { isVisible, membersOf, type Resource } from '../../model/resource.ts';
import { RESOURCES, realm as realmResource } from '../../model/resources.ts';
import type { KeyedRecord, MaybePromise } from '../../model/store.ts';
import type { ForgedRows } from '../store/forged_rows.ts';

export interface ReadRecord extends KeyedRecord {
  /** The columns for lookups that do not match the members they are computed from. */
  readonly wrongColumns: readonly string[];
}

/** Reads the stored records of a realm, or all realms, with all members, after an ID. */
export type ReadRecords = (
  resource: Resource,
  realm: Uuid | undefined,
  after: Uuid,
  limit: number,
) => MaybePromise<readonly ReadRecord[]>;

export interface RecordVerificationOptions {
  readonly store: LogReader;
  readonly records: ReadRecords;
  readonly forgedRows: ForgedRows;
  readonly keys: LogKeys;
}

/** A stored row that contradicts the log or its MAC. */
export interface RecordFinding extends Pick<LogFinding, 'message'> {
  readonly table: string;
  readonly realm?: string | undefined;
  readonly id: string;
}

const PAGE = 1_000;

/**
 * Compares every record with the log: its revision with that of its newest entry, and its members with the last values in the
 * log. Checks the MACs of all rows that have one. It holds the last values of one realm in memory. `covered`: records that agree
 * with the log; `notCovered`: those whose newest log entry was removed, or has no values, so that nothing can be compared.
 */
export async function verifyRecords(options: RecordVerificationOptions) {
  const findings: RecordFinding[] = [];
  const result = { covered: 0, notCovered: 0, findings };
  for await (const row of options.forgedRows())
    findings.push({ ...row, message: describeForgedRow(row.table) });
  for await (const head of realmHeads(options)) {
    const verified = await verifyRealm(options, head);
    result.covered += verified.covered;
    result.notCovered += verified.notCovered;
    const changed = verified.findings.length > 0 ? await changedSince(options.store, head) : new Set();
    for (const finding of verified.findings) if (!changed.has(finding.id)) findings.push(finding);
  }
  return result;
}

/** The heads of the logs of realms, and one without entries of each realm that has no log. */
async function* realmHeads({ store, records }: RecordVerificationOptions): AsyncGenerator<LogHead> {
  for await (const head of headsOf(store)) if (head.log !== NIL_UUID) yield head;
  for await (const { record } of recordsOf(records, realmResource, undefined)) {
    if (!(await store.head(record.id))) yield { log: record.id, seq: 0, chain: undefined };
  }
}

interface LoggedRecord {
  readonly resource: Resource;
  readonly user: string | null;
  readonly revision: string;
  readonly isDeleted: boolean;
  readonly values: Readonly<Record<string, unknown>>;
  /** Whether every entry since its creation has its values and is in the chain. */
  readonly isComplete: boolean;
}

type LoggedRecords = Map<string, LoggedRecord>;

const keyOf = (resource: Resource, id: string): string => `${resource.number} ${id}`;

async function verifyRealm({ store, records, keys }: RecordVerificationOptions, head: LogHead) {
  const { log: realm, chain } = head;
  const logged = await readLogged(store, head, keys);
  const isWhole =
    chain === undefined ? head.seq === 0 : chain.anchor.seq === 0 && isChainStart(keys, realm, chain.anchor);
  const found: RecordFinding[] = [];
  const counts = { covered: 0, notCovered: 0 };
  for (const resource of RESOURCES) {
    const { table } = resource;
    for await (const { key, record, wrongColumns } of recordsOf(records, resource, realm)) {
      const last = logged.get(keyOf(resource, record.id));
      logged.delete(keyOf(resource, record.id));
      const messages = last ? contradictions(last, { key, record }) : [];
      if (!last && isWhole) messages.push('no log entry records it');
      messages.push(...wrongColumns.map((name) => `${name} does not match the value it is computed from`));
      found.push(...messages.map((message) => ({ table, realm, id: record.id, message })));
      counts[last?.isComplete ? 'covered' : 'notCovered'] += 1;
    }
  }
  return { ...counts, findings: [...found, ...missingRecords(realm, logged)] };
}

function missingRecords(realm: Uuid, logged: LoggedRecords): readonly RecordFinding[] {
  return [...logged]
    .filter(([, { isDeleted }]) => !isDeleted)
    .map(([key, { resource }]) => {
      const [, id = ''] = key.split(' ');
      const message = 'the log records it and no deletion, but it does not exist';
      return { table: resource.table, realm, id, message };
    });
}

function contradictions(last: LoggedRecord, { key, record }: KeyedRecord): string[] {
  const user = key.length > 2 ? key[1] : null;
  if (last.isDeleted) return ['the log records its deletion, but it exists'];
  const found: string[] = [];
  if (last.revision !== record.revision) found.push('its revision is not that of its newest log entry');
  if (user !== null && last.user !== user) found.push('it belongs to another user than in the log');
  const stored: Readonly<Record<string, unknown>> = record;
  for (const [name, value] of Object.entries(last.values)) {
    if (JSON.stringify(stored[name] ?? null) !== JSON.stringify(value ?? null))
      found.push(`${name} is not as in the log`);
  }
  return found;
}

async function* recordsOf(records: ReadRecords, resource: Resource, realm: Uuid | undefined) {
  const read = (last: ReadRecord | undefined) => records(resource, realm, last?.record.id ?? NIL_UUID, PAGE);
  for await (const page of pagesOf(read)) yield* page;
}

async function readLogged(
  store: LogReader,
  { log, seq: end, chain }: LogHead,
  keys: LogKeys,
): Promise<LoggedRecords> {
  const logged: LoggedRecords = new Map();
  const read = (after: number) => store.entries(log, after, PAGE);
  // Nothing authenticates the entries up to this one.
  const chainStart = chain?.anchor.seq ?? end;
  for await (const page of pagesAfter(0, read, end)) {
    const open = await openPersonalValues(log, page, store, keys);
    for (const entry of page) addEntry(logged, entry, open(entry), chainStart);
  }
  return logged;
}

function addEntry(
  logged: LoggedRecords,
  { seq, columns }: StoredEntry,
  personal: Uint8Array | string | undefined,
  chainStart: number,
): void {
  const event = String(columns.event);
  const resource = eventResource(event);
  if (!resource) return;
  const key = keyOf(resource, String(columns.record_id));
  const verb = event.slice(event.lastIndexOf('.') + 1);
  const before = logged.get(key);
  const isNew = verb === 'created';
  const after = valuesAfter(columns, resource, personal);
  const hasValues = after !== undefined || (verb === 'updated' && isWithoutValues(resource, columns));
  logged.set(key, {
    resource,
    user: columns.user_id as string | null,
    revision: String(columns.revision),
    isDeleted: verb === 'deleted' || verb === 'erased',
    values: { ...(isNew ? {} : before?.values), ...after },
    isComplete: (isNew ? seq > chainStart : before?.isComplete === true) && hasValues,
  });
}

/** Whether the log has no values of such an update: of the time alone, or of a password or another secret. */
function isWithoutValues(resource: Resource, { members }: StoredEntry['columns']): boolean {
  const written = String(members).split(' ');
  return !membersOf(resource).some((member) => isVisible(member) && written.includes(member.name));
}

/** The values after a write; undefined for an entry without any, or whose values cannot be read any more. */
function valuesAfter(
  { detail }: StoredEntry['columns'],
  resource: Resource,
  personal: Uint8Array | string | undefined,
): LoggedRecord['values'] | undefined {
  if (typeof personal === 'string') return undefined;
  return attempt(() => {
    const plain = detail instanceof Uint8Array ? unpackDetail(resource, detail).after : undefined;
    return personal ? { ...plain, ...unpackDetail(resource, personal).after } : plain;
  });
}

/** The records that were written after the verification of their realm began. */
async function changedSince(store: LogReader, { log, seq }: LogHead): Promise<ReadonlySet<string>> {
  const changed = new Set<string>();
  for await (const page of pagesAfter(seq, (after) => store.entries(log, after, PAGE)))
    for (const { columns } of page) changed.add(String(columns.record_id));
  return changed;
}
