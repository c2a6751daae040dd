import type { Store } from '../directory/store.ts';
import { type AuditContext, COMMAND_LINE, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AnyRecord, isVisible, membersOf, type Resource } from '../domain/resource.ts';
import { RESOURCES, user } from '../domain/resources.ts';
import { foldedKey } from '../domain/text/folding.ts';
import type { Person } from './log_keys.ts';
import type { Eraser, Erasure, ScrubOptions, ScrubResult } from './port.ts';
import type { LogReading, ReadableEntry } from './reading.ts';

export interface ErasureDeps {
  readonly records: Pick<Store, 'get' | 'list' | 'purge'> & Eraser;
  readonly reading: LogReading;
  readonly scrub: (texts: readonly string[], options: ScrubOptions) => Promise<ScrubResult>;
  /** Tells it where checkpoints are told. Rejects where that could not be done. */
  readonly report: (erasure: Erasure) => Promise<void>;
}

/** A user who was erased, and what is still to be done about the files. */
export interface StartedErasure {
  readonly erasure: Erasure;
  /**
   * Why it could not be told: undefined where it stands outside of the database. The service tells it until
   * it does.
   */
  readonly reportError: Promise<unknown>;
  /** Empties the files of what they still hold, and notes it. May be called again. */
  scrub(options: ScrubOptions): Promise<ScrubResult>;
}

/**
 * Erases a user: rows, remembered answers, and what the log could tell of the person. When this resolves
 * nobody can read any of it through the database; `scrub` then sees to the bytes. Undefined where nothing
 * tells that there was such a user. Interrupted, it is asked for again.
 */
export async function eraseUser(
  { records, reading, scrub, report }: ErasureDeps,
  person: Person,
  auditContext: AuditContext,
): Promise<StartedErasure | undefined> {
  const texts = await personalTexts(records, reading, person);
  const { caller = COMMAND_LINE, mintRevision } = auditContext;
  const key = [person.realm, person.user] as const;
  const at = auditContext.now();
  const origin = { ...caller, at };
  const auditEntry = createAuditEntry(
    'user.erased',
    { ...person, object: person.user, detail: {} },
    auditContext,
  );
  const erase = () => records.erase({ key, origin, mintRevision, auditEntry });
  const purge = () => records.purge({ resource: user, key, origin, mintRevision, isErasure: true });
  let { kind } = await erase();
  while (kind === 'too_many') {
    await purge();
    ({ kind } = await erase());
  }
  if (kind === 'unknown') return undefined;
  const erasure = { ...person, at };
  const reportError = report(erasure).then(
    () => undefined,
    (error: unknown) => error ?? 'unknown',
  );
  return {
    erasure,
    reportError,
    async scrub(options) {
      // One who was erased before that was done left nothing to say what to look for.
      const scrubbed = await scrub(texts, { ...options, rewriteAlways: texts.length === 0 });
      if (scrubbed.kind === 'clean') await records.markScrubbed(person, auditContext.now());
      return scrubbed;
    },
  };
}

/**
 * Every text about a person that stands in a record, or stood in one since the log tells of it; as it is
 * compared, too.
 */
async function personalTexts(
  records: ErasureDeps['records'],
  reading: LogReading,
  person: Person,
): Promise<readonly string[]> {
  const values: unknown[] = [];
  for await (const { resource, record } of userRecords(records, person)) {
    for (const { name, placement } of membersOf(resource)) if (placement.personal) values.push(record[name]);
  }
  for await (const { personal } of userEntries(reading, person)) {
    if (typeof personal !== 'object') continue;
    values.push(...[personal.before, personal.after].flatMap((members) => Object.values(members ?? {})));
  }
  const texts = values.filter((value): value is string => typeof value === 'string' && value !== '');
  return [...new Set(texts.flatMap((text) => [text, foldedKey(text)]))];
}

/** What the log of its realm tells of a user. */
export async function* userEntries(
  reading: LogReading,
  person: Person,
  log: 'realm' | 'installation' = 'realm',
): AsyncGenerator<ReadableEntry> {
  let after = 0;
  for (;;) {
    const entries = await reading.entriesOf(person, log, after, LIMITS.exportPageRecords);
    yield* entries;
    const last = entries.at(-1);
    if (!last) return;
    after = last.seq;
  }
}

interface OwnedRecord {
  readonly resource: Resource;
  readonly key: readonly Uuid[];
  readonly record: AnyRecord;
}

/** The user's own record, and those below it. */
export async function* userRecords(
  records: Pick<Store, 'get' | 'list'>,
  person: Person,
): AsyncGenerator<OwnedRecord> {
  const key = [person.realm, person.user] as const;
  const own = await records.get(user, key);
  if (!own) return;
  yield { resource: user, key, record: own };
  for (const resource of RESOURCES.filter(({ parent }) => parent === user)) {
    yield* recordsBelow(records, resource, key);
  }
}

async function* recordsBelow(
  records: Pick<Store, 'list'>,
  resource: Resource,
  scope: readonly [Uuid, Uuid],
): AsyncGenerator<OwnedRecord> {
  const sort = { by: 'id', isDescending: false } as const;
  const limit = LIMITS.pageRecordsMax;
  let after: { readonly at: undefined; readonly id: Uuid } | undefined;
  for (;;) {
    const page = { kind: 'after', after, limit } as const;
    const listed = await records.list(resource, scope, { filter: [], sort, page });
    if (!listed) throw new Fault('not_found');
    for (const { key, record } of listed.items) yield { resource, key, record };
    const last = listed.items.at(-1);
    if (!listed.hasMore || !last) return;
    after = { at: undefined, id: last.record.id };
  }
}

/** What callers may see of a record, as an export for the person has it. */
export function exportedRecord({ resource, key, record }: OwnedRecord): Readonly<Record<string, unknown>> {
  const members = membersOf(resource).filter(isVisible);
  return {
    type: resource.type,
    key,
    id: record.id,
    ...Object.fromEntries(members.map(({ name }) => [name, record[name]])),
    created_at: new Date(record.created_at).toISOString(),
    updated_at: new Date(record.updated_at).toISOString(),
  };
}
