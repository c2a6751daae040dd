import { eventResource } from '../domain/event.ts';
import { NIL_UUID, type Uuid } from '../domain/id.ts';
import type { StoredEntry } from '../store/audit/entry_row.ts';
import type { LogStore } from '../store/audit/log_reading.ts';
import type { LogKeys, Person } from './log_keys.ts';
import { openPerson, PERSON_MEMBER } from './log_keys.ts';
import { type BeforeAndAfter, unpackDetail } from './packed_detail.ts';

/** An entry as an operator reads it. Members that do not apply are absent. */
export interface ReadableEntry {
  /** The realm whose log it is in; the nil UUID for that of the installation. */
  readonly log: Uuid;
  readonly seq: number;
  readonly at: string;
  /** The event of a change, or the action of an installation entry. */
  readonly what: string;
  readonly actor: string;
  readonly address?: string;
  readonly request_id?: string;
  readonly realm_id?: string;
  readonly user_id?: string;
  /** The record, client, key or webhook target it concerns. */
  readonly object?: string;
  readonly members?: readonly string[];
  /** Members without personal values; for an installation entry, its whole detail. */
  readonly detail?: BeforeAndAfter | Readonly<Record<string, unknown>>;
  /**
   * Personal values: `erased` once they cannot be read any more, `unreadable` if the stored value was edited.
   */
  readonly personal?: BeforeAndAfter | 'erased' | 'unreadable';
  /** Hexadecimal; absent if it was removed. */
  readonly tag?: string;
}

export interface LogReading {
  /** Entries of a log after a sequence number, oldest first. */
  entries(log: Uuid, after: number, limit: number): Promise<readonly ReadableEntry[]>;
  /** Entries that concern a user, in the log of its realm or of the installation. */
  entriesOf(
    person: Person,
    log: 'realm' | 'installation',
    after: number,
    limit: number,
  ): Promise<readonly ReadableEntry[]>;
}

export function openLogReading(
  store: Pick<LogStore, 'entries' | 'entriesOf' | 'userKeys' | 'erasure'>,
  keys: Pick<LogKeys, 'decrypt'>,
): LogReading {
  async function readable(log: Uuid, entries: readonly StoredEntry[]): Promise<readonly ReadableEntry[]> {
    const users = new Set(
      entries.flatMap(({ columns }) =>
        columns.personal && columns.user_id ? [columns.user_id as Uuid] : [],
      ),
    );
    const userKeys = users.size === 0 ? new Map<Uuid, Uint8Array>() : await store.userKeys(log, [...users]);
    const isErased = new Map<Uuid, boolean>();
    const readableEntries: ReadableEntry[] = [];
    for (const entry of entries) {
      let personal = personalOf(log, entry, userKeys, keys);
      if (personal.personal === 'unreadable') {
        // The user may have been erased and created again, with another key.
        const user = entry.columns.user_id as Uuid;
        const erased = isErased.get(user) ?? (await store.erasure({ realm: log, user })) !== undefined;
        isErased.set(user, erased);
        if (erased) personal = { personal: 'erased' };
      }
      readableEntries.push({
        ...(log === NIL_UUID ? installationEntry(entry, keys) : realmEntry(log, entry)),
        ...personal,
        ...tagOf(entry),
      });
    }
    return readableEntries;
  }

  return {
    entries: async (log, after, limit) => readable(log, await store.entries(log, after, limit)),
    entriesOf: async (person, log, after, limit) =>
      readable(log === 'realm' ? person.realm : NIL_UUID, await store.entriesOf(person, log, after, limit)),
  };
}

function personalOf(
  log: Uuid,
  { columns }: StoredEntry,
  userKeys: ReadonlyMap<Uuid, Uint8Array>,
  keys: Pick<LogKeys, 'decrypt'>,
): Pick<ReadableEntry, 'personal'> {
  if (!(columns.personal instanceof Uint8Array)) return {};
  // Only tampering leaves an entry without the user of its personal values.
  if (columns.user_id === null) return { personal: 'unreadable' };
  const user = columns.user_id as Uuid;
  const userKey = userKeys.get(user);
  if (!userKey) return { personal: 'erased' };
  try {
    const plain = keys.decrypt(userKey, { realm: log, user }, columns.personal);
    return { personal: unpackDetail(eventResource(String(columns.event)), plain) };
  } catch {
    return { personal: 'unreadable' };
  }
}

function installationEntry({ seq, at, columns }: StoredEntry, keys: Pick<LogKeys, 'decrypt'>): ReadableEntry {
  const { action, actor, object, realm_id, user_id } = columns;
  const { [PERSON_MEMBER]: sealed, ...detail } = JSON.parse(String(columns.detail));
  return {
    log: NIL_UUID,
    seq,
    at: new Date(at).toISOString(),
    what: String(action),
    actor: String(actor),
    ...requestOriginOf(columns),
    ...presentValues({ realm_id, user_id, object }),
    detail,
    ...(typeof sealed === 'string' ? { personal: personIn(sealed, keys) } : {}),
  };
}

/** The personal values of an installation entry. */
function personIn(sealed: string, keys: Pick<LogKeys, 'decrypt'>): BeforeAndAfter | 'unreadable' {
  try {
    return { after: { ...openPerson(keys, sealed) } };
  } catch {
    return 'unreadable';
  }
}

function realmEntry(log: Uuid, { seq, at, columns }: StoredEntry): ReadableEntry {
  const { event, actor, user_id, record_id, members, detail } = columns;
  return {
    log,
    seq,
    at: new Date(at).toISOString(),
    what: String(event),
    actor: String(actor),
    ...requestOriginOf(columns),
    realm_id: log,
    ...presentValues({ user_id, object: record_id }),
    ...(members ? { members: String(members).split(' ') } : {}),
    ...(detail ? { detail: JSON.parse(String(detail)) } : {}),
  };
}

function requestOriginOf({ address, request_id }: StoredEntry['columns']) {
  return presentValues({ address, request_id });
}

/** The members that have a value. */
function presentValues(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}

function tagOf({ tag }: StoredEntry): Pick<ReadableEntry, 'tag'> {
  return tag ? { tag: Buffer.from(tag).toString('hex') } : {};
}
