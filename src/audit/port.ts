import type { MaybePromise } from '../directory/store.ts';
import type { AuditEntry } from '../domain/audit_entry.ts';
import type { ChangeOrigin } from '../domain/change.ts';
import type { Erasure } from '../domain/erasure.ts';
import type { Revision, Uuid } from '../domain/id.ts';
import type { LogKeys, Person } from './log_keys.ts';

/** A value of a stored entry. */
export type EntryValue = string | number | Uint8Array | null;

/**
 * An entry as it is stored: its columns by name, in the order in which its tag covers them. Of a realm these
 * are `realm_id`, `seq`, `event`, `user_id`, `record_id`, `revision`, `members`, `actor`, `request_id`, `at`,
 * `address`, `detail`, `personal`; of the installation `seq`, `id`, `action`, `actor`, `object`, `realm_id`,
 * `user_id`, `address`, `request_id`, `detail`, `at`.
 */
export interface StoredEntry {
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly columns: Readonly<Record<string, EntryValue>>;
  /** Null behind the end of the chain, where a release before 0.2.0 wrote it. */
  readonly tag: Uint8Array | null;
}

/** How far a chain is: the last place that has a tag, that tag, and how many entries were ever tagged. */
export interface ChainLink {
  readonly seq: number;
  readonly tag: Uint8Array;
  readonly entries: number;
}

/** Where a chain begins, so sealed that nobody without the keys moves it. */
export interface Anchor extends ChainLink {
  readonly mac: Uint8Array;
}

/** Where the log of a realm stands, or with the nil UUID that of the installation. */
export interface LogHead {
  readonly log: Uuid;
  /** The last place that was given out. */
  readonly seq: number;
  /** Undefined for a log that has no tagged entry yet. */
  readonly chain: { readonly end: ChainLink; readonly anchor: Anchor } | undefined;
}

export type { Erasure };

/** A user who is to be erased. */
export interface EraseRequest {
  readonly key: readonly [realm: Uuid, user: Uuid];
  readonly origin: ChangeOrigin;
  /** New revisions of what changes by it. */
  readonly mintRevision: () => Revision;
  readonly auditEntry: AuditEntry;
}

/**
 * - `erased`: the user is gone with all that hung on it, what it was told of in the log cannot be read any
 *   more, and that it
 * happened stands in the log and in the list of erasures.
 * - `crowded`: more would go than one commit takes along: purge it first.
 * - `unknown`: nothing tells that there was such a user.
 */
export type EraseResult = { readonly kind: 'erased' | 'too_many' | 'unknown' };

/** Who erases: a port of its own, because nothing else destroys what the log can tell. */
export interface Eraser {
  erase(request: EraseRequest): Promise<EraseResult>;
  /** Notes that no copy of what was erased is left in the files of the database. */
  markScrubbed(person: Pick<Erasure, 'realm' | 'user'>, at: number): Promise<void>;
}

/**
 * Looks for texts in every byte of the file of an embedded database, in another process; answers whether one
 * stands there that no record holds.
 */
export type SearchFile = (path: string, texts: readonly string[]) => Promise<boolean>;

/** How far a scrub may go. */
export interface ScrubOptions {
  readonly search: SearchFile;
  /**
   * Whether the file of an embedded database may be written anew, which keeps this process and all writers
   * waiting.
   */
  readonly mayRewrite: boolean;
  /** Nobody knows any more which texts to look for: the file is written anew whatever stands in it. */
  readonly rewriteAlways?: boolean;
}

/** What became of the places where a database keeps what it no longer tells. */
export type ScrubResult =
  /**
   * None of the texts stands in a file of the database; `isRewritten`: one did, and the file was written
   * anew.
   */
  | { readonly kind: 'clean'; readonly isRewritten: boolean }
  /** Another program left some in the file, and writing it anew takes too long for who answers requests. */
  | { readonly kind: 'left' }
  /** Only who runs the database can see to that; its log holds them up to this position. */
  | { readonly kind: 'archived'; readonly position: string; readonly isVacuumed: boolean };

/** Where the log rests: what was written in each realm, and what was done to the installation. */
export interface LogStore {
  /** From here on what is written is tagged, and tells what was before and after. */
  useKeys(keys: LogKeys): void;
  /**
   * Logs what was done to the installation. Resolves after the commit is on disk. Rejects with Fault
   * `unknown_outcome` where nobody knows whether it is: the same acts may be noted again, and those that have
   * an identifier are one entry.
   */
  append(auditEntries: readonly AuditEntry[]): Promise<void>;
  /**
   * The heads of logs behind `after` in the order of their realms, at most `limit`; the installation's is the
   * first.
   */
  heads(after: Uuid | undefined, limit: number): MaybePromise<readonly LogHead[]>;
  head(log: Uuid): MaybePromise<LogHead | undefined>;
  /** The entries of a log behind a place, oldest first, at most `limit`. */
  entries(log: Uuid, after: number, limit: number): MaybePromise<readonly StoredEntry[]>;
  /**
   * The same, of those that concern a user: of a realm, or of the installation what was done to that user of
   * a realm.
   */
  entriesOf(
    person: Person,
    log: 'realm' | 'installation',
    after: number,
    limit: number,
  ): MaybePromise<readonly StoredEntry[]>;
  /** What the personal values of these users are encrypted with; those who were erased are missing. */
  userKeys(realm: Uuid, users: readonly Uuid[]): MaybePromise<ReadonlyMap<Uuid, Uint8Array>>;
  /**
   * Begins every chain that is not begun, and tags what an older release wrote without: a thousand entries to
   * a commit.
   */
  catchUp(at: number): Promise<void>;
  /**
   * Removes the oldest tagged entries of a log that are older than `before`, at most LIMITS.cascadeRecordsMax
   * of them and never the newest that is, and moves the anchor behind them; what stands before its beginning
   * goes first. Answers how many went. Rejects with an error where one of them is not what was tagged.
   */
  trim(log: Uuid, before: number): Promise<number>;
  /** When a user was erased, who was. */
  erasure(person: Person): MaybePromise<Erasure | undefined>;
  /**
   * The erasures behind that of `after`, in the order of their realms and users, of which it is not noted
   * that they were told.
   */
  unreportedErasures(after: Person | undefined, limit: number): MaybePromise<readonly Erasure[]>;
  /** Notes that these were told outside of the database. */
  markErasuresReported(erasures: readonly Erasure[], at: number): Promise<void>;
}
