import { attempt } from '../model/attempt.ts';
import { NIL_UUID, type Uuid } from '../model/id.ts';
import { eventResource } from '../model/log/event.ts';
import type { EntryValue } from './chain.ts';
import { type LogKeys, openPerson, PERSON_MEMBER, type Person } from './keys.ts';
import { type BeforeAndAfter, unpackDetail } from './packed_detail.ts';
import type { StoredEntry } from './store/entry_row.ts';
import type { LogStore } from './store/reading.ts';
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
    const erasures = new Map<Uuid, ReturnType<LogStore['erasure']>>();
    /** The user may have been erased and created again, with another key. */
    const erasureOf = (user: Uuid) =>
      erasures.getOrInsertComputed(user, () => store.erasure({ realm: log, user }));
    const readableEntries: ReadableEntry[] = [];
    for (const entry of entries) {
      const opened = open(entry);
      const { event, user_id } = entry.columns;
      const found = opened instanceof Uint8Array ? (unpacked(event, opened) ?? 'unreadable') : opened;
      const personal = found === 'unreadable' && (await erasureOf(user_id as Uuid)) ? 'erased' : found;
      readableEntries.push({
        ...entryWithoutPersonal(log, entry, keys),
        ...(personal && { personal }),
        ...(entry.tag ? { tag: Buffer.from(entry.tag).toString('hex') } : {}),
      });
    }
    return readableEntries;
  }

  return {
    /** The entry of a change; undefined if retention has removed it. */
    async entryOf({ realm, seq }: { readonly realm: Uuid; readonly seq: number }) {
      const entries = await readable(realm, await store.entries(realm, seq - 1, 1));
      return entries.find((entry) => entry.seq === seq);
    },
    /** Entries of a log after a sequence number, oldest first. */
    entries: async (log: Uuid, after: number, limit: number) =>
      readable(log, await store.entries(log, after, limit)),
    /** Entries that concern a user, in the log of its realm or of the installation. */
    entriesOf: async (person: Person, log: 'realm' | 'installation', after: number, limit: number) =>
      readable(log === 'realm' ? person.realm : NIL_UUID, await store.entriesOf(person, log, after, limit)),
  };
}

function entryWithoutPersonal(
  log: Uuid,
  { seq, at, columns }: StoredEntry,
  keys: Pick<LogKeys, 'decrypt'>,
): ReadableEntry {
  const { action, event = action, actor, address, request_id, user_id } = columns;
  const { object, record_id = object } = columns;
  const isOfRealm = log !== NIL_UUID;
  const realm_id = isOfRealm ? log : columns.realm_id;
  return {
    log,
    seq,
    at: new Date(at).toISOString(),
    what: String(event),
    actor: String(actor),
    ...presentValues({ address, request_id, realm_id, user_id, object: record_id }),
    ...(isOfRealm ? realmDetail(columns) : installationDetail(columns, keys)),
  };
}

function installationDetail({ detail }: StoredEntry['columns'], keys: Pick<LogKeys, 'decrypt'>) {
  const { [PERSON_MEMBER]: sealed, ...rest } = JSON.parse(String(detail));
  if (typeof sealed !== 'string') return { detail: rest };
  const personal = attempt(() => ({ after: { ...openPerson(keys, sealed) } })) ?? ('unreadable' as const);
  return { detail: rest, personal };
}

function realmDetail({ event, members, detail }: StoredEntry['columns']) {
  return {
    ...(members ? { members: String(members).split(' ') } : {}),
    // Bytes that were tampered with are shown as they are.
    ...(detail instanceof Uint8Array && {
      detail: unpacked(event, detail) ?? { unreadable: detail.toHex() },
    }),
  };
}

function unpacked(event: EntryValue | undefined, bytes: Uint8Array): BeforeAndAfter | undefined {
  return attempt(() => unpackDetail(eventResource(String(event)), bytes));
}

function presentValues(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}
