import type { Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { type AuditContext, COMMAND_LINE, createAuditEntry } from '../model/log/audit_entry.ts';
import type { Erasure } from '../model/log/erasure.ts';
import { pagesOf } from '../model/pages.ts';
import { type AnyRecord, isVisible, membersOf, type Resource } from '../model/resource.ts';
import { passwordProfileInfo, RESOURCES, user } from '../model/resources.ts';
import type { KeyedRecord, Store } from '../model/store.ts';
import { foldedKey } from '../model/text/folded_key.ts';
import type { SignInName } from '../sign_in/credentials.ts';
import type { Person } from './keys.ts';
import type { BeforeAndAfter } from './packed_detail.ts';
import type { LogReading, ReadableEntry } from './reading.ts';
import type { Eraser } from './store/erase.ts';
import { pagesAfter } from './stored_entries.ts';

export interface ErasureDeps {
  readonly records: Pick<Store, 'get' | 'list'> & Eraser;
  readonly reading: LogReading;
  /** Writes the erasure to the checkpoint file. Rejects if that fails. */
  readonly report: (erasure: Erasure) => Promise<void>;
  /** Deletes the counters of wrong passwords of a username. */
  readonly removeBuckets: (name: SignInName) => Promise<void>;
}

/**
 * Erases a user: records, and the key of the personal values in the log. When this resolves they
 * cannot be read through the database any more; the engine then removes their bytes from its files. Undefined if no such
 * user is known. `reportError` resolves with the error of reporting the erasure; with undefined once it is in the file. The service
 * retries until it is. Call it again if it was interrupted.
 */
export async function eraseUser(
  { records, reading, report, removeBuckets }: ErasureDeps,
  person: Person,
  auditContext: AuditContext,
) {
  const owned = await Array.fromAsync(userRecords(records, person));
  const entries = await Array.fromAsync(userEntries(reading, person));
  // First, because records and entries are what they are found by.
  for (const name of signInNames(owned, entries, person)) await removeBuckets(name);
  const { caller = COMMAND_LINE, mintRevision } = auditContext;
  const key = [person.realm, person.user] as const;
  const at = auditContext.now();
  const origin = { ...caller, at };
  const auditEntry = createAuditEntry(
    'user.erased',
    { ...person, object: person.user, detail: {} },
    auditContext,
  );
  if (!(await records.erase({ key, origin, mintRevision, auditEntry }))) return undefined;
  const erasure = { ...person, at };
  const reportError = report(erasure).then(
    () => undefined,
    (error: unknown) => error ?? 'unknown',
  );
  return { erasure, reportError };
}

/** The usernames of a user: those of records, and from the log those of links that were deleted or have another one now. */
function signInNames(
  owned: readonly OwnedRecord[],
  entries: readonly ReadableEntry[],
  { realm: realmId }: Person,
): readonly SignInName[] {
  const versions: (readonly [linkId: unknown, members: LoggedMembers])[] = owned.flatMap(
    ({ resource, record }) => (resource === passwordProfileInfo ? [[record.id, record]] : []),
  );
  for (const { object, detail, personal } of entries)
    for (const version of ['before', 'after'] as const) {
      const written = [detail, personal].map((members) => (members as BeforeAndAfter | undefined)?.[version]);
      versions.push([object, Object.assign({}, ...written)]);
    }
  // An entry has the members that were written, the profile of a link never changes, and retention removes old entries.
  const profiles = new Map<unknown, unknown>();
  for (const [linkId, { password_profile_id: profileId }] of versions)
    if (profileId !== undefined) profiles.set(linkId, profileId);
  const names = new Map<string, SignInName>();
  for (const [linkId, { username }] of versions) {
    const profileId = profiles.get(linkId);
    if (typeof username !== 'string' || typeof profileId !== 'string') continue;
    const usernameKey = foldedKey(username);
    names.set(`${profileId} ${usernameKey}`, { realmId, profileId: profileId as Uuid, usernameKey });
  }
  return [...names.values()];
}

type LoggedMembers = Readonly<Record<string, unknown>>;

export async function* userEntries(
  reading: LogReading,
  person: Person,
  log: 'realm' | 'installation' = 'realm',
): AsyncGenerator<ReadableEntry> {
  const read = (after: number) => reading.entriesOf(person, log, after, LIMITS.exportPageRecords);
  for await (const entries of pagesAfter(0, read)) yield* entries;
}

interface OwnedRecord {
  readonly resource: Resource;
  readonly key: readonly Uuid[];
  readonly record: AnyRecord;
}

/** The record of the user and those below it; it ends where the user is deleted concurrently. */
export async function* userRecords(
  records: Pick<Store, 'get' | 'list'>,
  person: Person,
): AsyncGenerator<OwnedRecord> {
  const key = [person.realm, person.user] as const;
  const own = await records.get(user, key);
  if (!own) return;
  yield { resource: user, key, record: own };
  const sort = { by: 'id', isDescending: false } as const;
  for (const resource of RESOURCES.filter(({ parent }) => parent === user)) {
    const pages = pagesOf<KeyedRecord>(async (last) => {
      const after = last && { at: undefined, id: last.record.id };
      const page = { kind: 'after', after, limit: LIMITS.pageRecordsMax } as const;
      return (await records.list(resource, key, { filter: [], sort, page }))?.items ?? [];
    });
    for await (const page of pages) for (const found of page) yield { resource, ...found };
  }
}

/** The visible members of a record, as in a subject access export. */
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
