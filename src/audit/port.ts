import type { MaybePromise } from '../directory/store.ts';
import type { AuditEntry } from '../domain/audit_entry.ts';
import type { ChangeOrigin } from '../domain/change.ts';
import type { Erasure } from '../domain/erasure.ts';
import type { Revision, Uuid } from '../domain/id.ts';
import type { LogKeys, Person } from './log_keys.ts';

/** A value of a stored entry. */
export type EntryValue = string | number | Uint8Array | null;

/**
 * A stored entry: its columns by name, in the order that its tag covers. In a realm log: `realm_id`, `seq`,
 * `event`, `user_id`, `record_id`, `revision`, `members`, `actor`, `request_id`, `at`, `address`, `detail`,
 * `personal`; in the installation log: `seq`, `id`, `action`, `actor`, `object`, `realm_id`, `user_id`,
 * `address`, `request_id`, `detail`, `at`.
 */
export interface StoredEntry {
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly columns: Readonly<Record<string, EntryValue>>;
  /** Null if it was removed. */
  readonly tag: Uint8Array | null;
}

/**
 * The position of a chain: the last tagged sequence number, its tag, and the number of entries ever tagged.
 */
export interface ChainLink {
  readonly seq: number;
  readonly tag: Uint8Array;
  readonly entries: number;
}

/** The authenticated start of a chain: it cannot be moved without the keys. */
export interface Anchor extends ChainLink {
  readonly mac: Uint8Array;
}

/** The head of the log of a realm, or of the installation (nil UUID). */
export interface LogHead {
  readonly log: Uuid;
  /** The last assigned sequence number. */
  readonly seq: number;
  /** Undefined for a log without tagged entries. */
  readonly chain: { readonly end: ChainLink; readonly anchor: Anchor } | undefined;
}

export type { Erasure };

/** A request to erase a user. */
export interface EraseRequest {
  readonly key: readonly [realm: Uuid, user: Uuid];
  readonly origin: ChangeOrigin;
  /** Generates the revisions of records that change. */
  readonly mintRevision: () => Revision;
  readonly auditEntry: AuditEntry;
}

/** Erases users; a separate port, because nothing else destroys logged values. */
export interface Eraser {
  /**
   * Deletes the user and the records below it, in several commits if they are many. With the last one their data in the log cannot
   * be decrypted any more, and the erasure is in the log and in the list of erasures. Returns false if no record and no log entry
   * has this user.
   */
  erase(request: EraseRequest): Promise<boolean>;
}

/**
 * What is left of erased data in the files of the database. `clean`: nothing. `archived`: data files and archived logs of a
 * server hold it, which only its operator can remove.
 */
export type ErasedBytes = 'clean' | 'archived';

/** Stores the audit logs: one per realm, and one of the installation. */
export interface LogStore {
  /** From now on entries are tagged with these keys and contain values before and after. */
  useKeys(keys: LogKeys): void;
  /**
   * Appends entries to the installation log. Resolves when the commit is on disk. Rejects with Fault
   * `unknown_outcome` if that is unknown: the same entries may be appended again, and those with an ID are
   * written once.
   */
  append(auditEntries: readonly AuditEntry[]): Promise<void>;
  /** The heads of logs after `after`, ordered by realm, at most `limit`; the installation log is first. */
  heads(after: Uuid | undefined, limit: number): MaybePromise<readonly LogHead[]>;
  head(log: Uuid): MaybePromise<LogHead | undefined>;
  /** The entries of a log after a sequence number, oldest first, at most `limit`. */
  entries(log: Uuid, after: number, limit: number): MaybePromise<readonly StoredEntry[]>;
  /** The entries that concern a user, in the log of its realm or in the installation log. */
  entriesOf(
    person: Person,
    log: 'realm' | 'installation',
    after: number,
    limit: number,
  ): MaybePromise<readonly StoredEntry[]>;
  /** The stored values from which the encryption keys of these users are derived; erased users are absent. */
  userKeys(realm: Uuid, users: readonly Uuid[]): MaybePromise<ReadonlyMap<Uuid, Uint8Array>>;
  /**
   * Removes the oldest tagged entries older than `before`, at most LIMITS.cascadeRecordsMax and never the
   * newest of them, and moves the anchor. Returns the number of removed entries. Rejects if one of them is not what was tagged.
   */
  trim(log: Uuid, before: number): Promise<number>;
  /** The erasure of a user; undefined if it was not erased. */
  erasure(person: Person): MaybePromise<Erasure | undefined>;
  /** The erasures after that of `after`, ordered by realm and user, that are not marked as reported. */
  unreportedErasures(after: Person | undefined, limit: number): MaybePromise<readonly Erasure[]>;
  /** Marks erasures as reported. */
  markErasuresReported(erasures: readonly Erasure[], at: number): Promise<void>;
}

/** What a verification reads. */
export type LogReader = Pick<LogStore, 'heads' | 'head' | 'entries' | 'entriesOf' | 'userKeys'>;
