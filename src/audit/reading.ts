import { eventResource } from '../domain/event.ts';
import { NIL_UUID, type Uuid } from '../domain/id.ts';
import type { StoredEntry } from '../store/audit/entry_row.ts';
import type { LogStore } from '../store/audit/log_reading.ts';
import type { LogKeys, Person } from './log_keys.ts';
import { openPerson, PERSON_MEMBER } from './log_keys.ts';
import { type BeforeAndAfter, unpackDetail } from './packed_detail.ts';
import { openPersonalValues } from './stored_entries.ts';

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

export type LogReading = ReturnType<typeof openLogReading>;

export function openLogReading(
  store: Pick<LogStore, 'entries' | 'entriesOf' | 'userKeys' | 'erasure'>,
  keys: Pick<LogKeys, 'decrypt'>,
) {
  async function readable(log: Uuid, entries: readonly StoredEntry[]): Promise<readonly ReadableEntry[]> {
    const open = await openPersonalValues(log, entries, store, keys);
    const erased = new Map<Uuid, boolean>();
    /** The user may have been erased and created again, with another key. */
    const isErased = async (user: Uuid) => {
      const found = erased.get(user) ?? (await store.erasure({ realm: log, user })) !== undefined;
      erased.set(user, found);
      return found;
    };
    const readableEntries: ReadableEntry[] = [];
    for (const entry of entries) {
      const found = unpacked(entry, open(entry));
      const user = entry.columns.user_id as Uuid;
      const personal = found === 'unreadable' && (await isErased(user)) ? 'erased' : found;
      readableEntries.push({
        ...(log === NIL_UUID ? installationEntry(entry, keys) : realmEntry(log, entry)),
        ...(personal && { personal }),
        ...(entry.tag ? { tag: Buffer.from(entry.tag).toString('hex') } : {}),
      });
    }
    return readableEntries;
  }

  return {
    /** Entries of a log after a sequence number, oldest first. */
    entries: async (log: Uuid, after: number, limit: number) =>
      readable(log, await store.entries(log, after, limit)),
    /** Entries that concern a user, in the log of its realm or of the installation. */
    entriesOf: async (person: Person, log: 'realm' | 'installation', after: number, limit: number) =>
      readable(log === 'realm' ? person.realm : NIL_UUID, await store.entriesOf(person, log, after, limit)),
  };
}

function unpacked(
  { columns }: StoredEntry,
  personal: Uint8Array | 'erased' | 'unreadable' | undefined,
): ReadableEntry['personal'] {
  if (!(personal instanceof Uint8Array)) return personal;
  try {
    return unpackDetail(eventResource(String(columns.event)), personal);
  } catch {
    return 'unreadable';
  }
}

function installationEntry({ seq, at, columns }: StoredEntry, keys: Pick<LogKeys, 'decrypt'>): ReadableEntry {
  const { action, actor, address, request_id, object, realm_id, user_id } = columns;
  const { [PERSON_MEMBER]: sealed, ...detail } = JSON.parse(String(columns.detail));
  return {
    log: NIL_UUID,
    seq,
    at: new Date(at).toISOString(),
    what: String(action),
    actor: String(actor),
    ...presentValues({ address, request_id, realm_id, user_id, object }),
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
  const { event, actor, address, request_id, user_id, record_id, members, detail } = columns;
  return {
    log,
    seq,
    at: new Date(at).toISOString(),
    what: String(event),
    actor: String(actor),
    ...presentValues({ address, request_id, realm_id: log, user_id, object: record_id }),
    ...(members ? { members: String(members).split(' ') } : {}),
    ...(detail instanceof Uint8Array ? { detail: detailIn(String(event), detail) } : {}),
  };
}

/** The members of a realm entry without personal values. Bytes that were tampered with are shown as they are. */
function detailIn(event: string, bytes: Uint8Array): NonNullable<ReadableEntry['detail']> {
  try {
    return unpackDetail(eventResource(event), bytes);
  } catch {
    return { unreadable: bytes.toHex() };
  }
}

/** The members that have a value. */
function presentValues(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}
