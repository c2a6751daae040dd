import type { Uuid } from '../domain/id.ts';
import { user as users } from '../domain/resources.ts';
import type { LogKeys, Person } from './log_keys.ts';
import type { LogStore, StoredEntry } from './port.ts';
import type { Find } from './walk.ts';

/** Judges what one log of a realm tells of persons: what nobody can read any more is of users who were erased later. */
export interface PersonsJudge {
  take(entries: readonly StoredEntry[]): Promise<void>;
  end(): Promise<void>;
}

/** The event that says that a user was erased. */
const ERASED = `${users.name}.erased`;
const PAGE = 1_000;

export function openPersonsJudge(
  realm: Uuid,
  store: Pick<LogStore, 'salts' | 'entriesOf'>,
  keys: Pick<LogKeys, 'decrypt'>,
  find: Find,
): PersonsJudge {
  /** The places of entries that do not open, by user. */
  const closed = new Map<Uuid, number[]>();
  const erasedAt = new Map<Uuid, number>();
  let last = 0;

  /** Where a user was erased, the last time; also behind what was walked, because it may have happened meanwhile. */
  async function erasureOf(user: Uuid): Promise<number> {
    let seq = erasedAt.get(user) ?? 0;
    for (let after = last; ; ) {
      const entries = await store.entriesOf({ realm, user }, 'realm', after, PAGE);
      for (const entry of entries) if (entry.columns.event === ERASED) seq = entry.seq;
      const end = entries.at(-1);
      if (!end) return seq;
      after = end.seq;
    }
  }

  return {
    async take(entries) {
      const told = entries.filter(({ columns }) => columns.personal instanceof Uint8Array);
      const named = new Set(told.map(({ columns }) => columns.user_id as Uuid));
      const salts = named.size > 0 ? await store.salts(realm, [...named]) : new Map<Uuid, Uint8Array>();
      for (const { seq, columns } of entries) {
        if (columns.event === ERASED) erasedAt.set(columns.user_id as Uuid, seq);
      }
      for (const { seq, columns } of told) {
        const user = columns.user_id as Uuid;
        const salt = salts.get(user);
        if (salt && opens(keys, salt, { realm, user }, columns.personal as Uint8Array)) continue;
        closed.set(user, [...(closed.get(user) ?? []), seq]);
      }
      last = entries.at(-1)?.seq ?? last;
    },
    async end() {
      for (const [user, places] of closed) {
        const erased = await erasureOf(user);
        for (const seq of places) {
          if (seq > erased)
            find(seq, 'its personal values cannot be read, and its user was not erased since');
        }
      }
    },
  };
}

function opens(
  keys: Pick<LogKeys, 'decrypt'>,
  salt: Uint8Array,
  person: Person,
  encrypted: Uint8Array,
): boolean {
  try {
    keys.decrypt(salt, person, encrypted);
    return true;
  } catch {
    return false;
  }
}
