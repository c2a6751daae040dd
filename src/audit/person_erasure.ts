import type { Store } from '../directory/store.ts';
import { type AuditContext, COMMAND_LINE, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AnyRecord, isVisible, membersOf, type Resource } from '../domain/resource.ts';
import { RESOURCES, user } from '../domain/resources.ts';
import { foldedKey } from '../domain/text/folding.ts';
import type { Person } from './log_keys.ts';
import type { Eraser, Erasure, Scrubbed, Scrubbing } from './port.ts';
import type { LogReading, ReadableEntry } from './reading.ts';

export interface ErasingRooms {
  readonly records: Pick<Store, 'get' | 'list' | 'purge'> & Eraser;
  readonly reading: LogReading;
  readonly scrub: (texts: readonly string[], how: Scrubbing) => Promise<Scrubbed>;
  /** Tells it where checkpoints are told. Rejects where that could not be done. */
  readonly tell: (erasure: Erasure) => Promise<void>;
}

/** A user who was erased, and what is still to be done about the files. */
export interface Erasing {
  readonly erasure: Erasure;
  /** Why it could not be told: undefined where it stands outside of the database. The service tells it until it does. */
  readonly untold: Promise<unknown>;
  /** Empties the files of what they still hold, and notes it. May be called again. */
  scrub(how: Scrubbing): Promise<Scrubbed>;
}

/**
 * Erases a user: rows, remembered answers, and what the log could tell of the person. When this resolves nobody can read
 * any of it through the database; `scrub` then sees to the bytes. Undefined where nothing tells that there was such a
 * user. Interrupted, it is asked for again.
 */
export async function eraseUser(
  { records, reading, scrub, tell }: ErasingRooms,
  person: Person,
  auditContext: AuditContext,
): Promise<Erasing | undefined> {
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
  while (kind === 'crowded') {
    await purge();
    ({ kind } = await erase());
  }
  if (kind === 'unknown') return undefined;
  const erasure = { ...person, at };
  const untold = tell(erasure).then(
    () => undefined,
    (error: unknown) => error ?? 'unknown',
  );
  return {
    erasure,
    untold,
    async scrub(how) {
      // One who was erased before that was done left nothing to say what to look for.
      const scrubbed = await scrub(texts, { ...how, isBlind: texts.length === 0 });
      if (scrubbed.kind === 'clean') await records.noteScrubbed(person, auditContext.now());
      return scrubbed;
    },
  };
}

/** Every text about a person that stands in a record, or stood in one since the log tells of it; as it is compared, too. */
async function personalTexts(
  records: ErasingRooms['records'],
  reading: LogReading,
  person: Person,
): Promise<readonly string[]> {
  const told: unknown[] = [];
  for await (const { resource, record } of recordsOf(records, person)) {
    for (const { name, placement } of membersOf(resource)) if (placement.personal) told.push(record[name]);
  }
  for await (const { personal } of entriesOf(reading, person)) {
    if (typeof personal !== 'object') continue;
    told.push(...[personal.before, personal.after].flatMap((members) => Object.values(members ?? {})));
  }
  const texts = told.filter((value): value is string => typeof value === 'string' && value !== '');
  return [...new Set(texts.flatMap((text) => [text, foldedKey(text)]))];
}

/** What the log of its realm tells of a user. */
export async function* entriesOf(
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

interface Held {
  readonly resource: Resource;
  readonly key: readonly Uuid[];
  readonly record: AnyRecord;
}

/** The user's own record, and those below it. */
export async function* recordsOf(records: Pick<Store, 'get' | 'list'>, person: Person): AsyncGenerator<Held> {
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
): AsyncGenerator<Held> {
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
export function toldOf({ resource, key, record }: Held): Readonly<Record<string, unknown>> {
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
