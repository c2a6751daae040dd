import type { FaultCode } from './fault.ts';
import type { ParsedFilter } from './filter/filter.ts';
import type { Revision, Uuid } from './id.ts';
import type { Change, ChangeOrigin, SequencedChange } from './log/change.ts';
import type {
  AnyRecord,
  Key,
  KeyPrefix,
  LookupKey,
  RecordOf,
  ReferenceCondition,
  Resource,
} from './resource.ts';

/** An embedded engine returns at once, a remote one later: reads of the embedded one never wait for a microtask. */
export type MaybePromise<T> = T | Promise<T>;

/** A condition on a record and another one, checked in the transaction of the write. */
export type Guard =
  /** Fails if the referenced record meets the condition. */
  | { readonly kind: 'unless'; readonly member: string; readonly condition: ReferenceCondition }
  /** Fails if the record that `reference` names has another value in its member `of`. */
  | { readonly kind: 'same'; readonly member: string; readonly reference: string; readonly of: string }
  /**
   * Fails if a patch changes this member; `unreferenced`: while a record refers to this one that should have the same value, and has
   * another. `input` is the member that the fault names: the one that the caller wrote to change it, or should have written as well.
   */
  | { readonly kind: 'unreferenced' | 'unchanged'; readonly member: string; readonly input: string };

/** New values of some members; without any, only the revision and `updated_at` change. */
export interface Patch {
  readonly members: Readonly<Record<string, unknown>>;
  readonly revision: Revision;
  /** Becomes `updated_at`, unless that is later already. */
  readonly at: number;
}

interface AnyWrite {
  readonly resource: Resource;
  readonly key: Key;
  /** Committed with the record; the audit log and the feed report it. */
  readonly change?: Change;
}

export interface Insert extends AnyWrite {
  readonly op: 'insert';
  readonly record: AnyRecord;
  /** Required, because the totals of lists count it. */
  readonly change: Change;
  readonly guards?: readonly Guard[] | undefined;
}

export interface PatchWrite extends AnyWrite {
  readonly op: 'patch';
  readonly patch: Patch;
  /** The revision that the stored record must have. */
  readonly expectedRevision?: Revision | undefined;
  readonly guards?: readonly Guard[] | undefined;
  /** It only sets the time and revision of a parent, because of another write in the commit. Its record is not returned. */
  readonly isTouch?: boolean;
  /** Of a user: ends its sign-ins, as a write that disables it does. */
  readonly endsSignIns?: true | undefined;
}

/** Replaces the stored record, for imports. */
export interface Replacement extends AnyWrite {
  readonly op: 'replace';
  readonly record: AnyRecord;
}

export type Write = Insert | PatchWrite | Replacement;

/**
 * The result of one write.
 * - `written`: it is in the transaction.
 * - `not_found`: there is no such record, parent or realm.
 * - `revision_mismatch`: the stored record has another revision than `expectedRevision`.
 * - `unique`: another record has these values (`id`, or a set of the description's `unique`).
 * - `foreign_key`: this member names a record that the realm does not have.
 * - `guard`: this guard does not hold.
 */
export type WriteResult = { readonly kind: 'written' } | WriteRefusal;

export type WriteRefusal =
  | { readonly kind: 'not_found' }
  | { readonly kind: 'revision_mismatch' }
  | { readonly kind: 'unique'; readonly members: readonly string[] }
  | { readonly kind: 'foreign_key'; readonly member: string }
  | { readonly kind: 'guard'; readonly guard: Guard };

/**
 * The result of a commit: that of its first refused write, with the `index` of that write, absent for the first; or
 * - `written`: all of it is on disk. `patched`: the records after the patches, in their order, as `get` returns them;
 *   absent without patches.
 * - `already_answered`: the same request has an idempotency record already.
 */
export type CommitResult =
  | { readonly kind: 'written'; readonly patched?: readonly AnyRecord[] }
  | { readonly kind: 'already_answered' }
  | (CommitRefusal & { readonly index?: number });

export type CommitRefusal = WriteRefusal | RemovalRefusal;

/**
 * If several apply to a removal, the first of `not_found`, `protected`, `too_many` and `revision_mismatch`: a precondition
 * decides last (RFC 9110, 13.2.1).
 * - `protected`: the description protects this record from removal (`protectedBy`).
 * - `too_many`: more than LIMITS.cascadeRecordsMax records would be removed with it.
 */
export type RemovalRefusal = {
  readonly kind: 'not_found' | 'revision_mismatch' | 'protected' | 'too_many';
};

/**
 * The outcome of a request with an `Idempotency-Key`: the records that it created, in its order, or the code of its refusal. It
 * has no value of the request, and of its records only the IDs. `key` and `body` are digests under the keyring, the former of
 * method, path and key; the realm is the nil UUID if the request names none.
 */
export interface IdempotencyRecord {
  readonly realm: Uuid;
  readonly clientId: string;
  readonly key: string;
  readonly body: string;
  readonly created: readonly Uuid[];
  readonly fault: FaultCode | undefined;
  readonly at: number;
  readonly expiresAt: number;
}

export type IdempotencyRecordKey = Pick<IdempotencyRecord, 'realm' | 'clientId' | 'key'>;

/** A record to delete, with all records below it and all that refer to it. */
export interface Removal {
  readonly resource: Resource;
  readonly key: Key;
  /** The revision that the stored record must have. */
  readonly expectedRevision?: Revision | undefined;
  readonly origin: ChangeOrigin;
  /** New revisions of the users that lose a record. */
  readonly mintRevision: () => Revision;
  /** Set for an erasure: the log entries hold no values. */
  readonly isErasure?: true;
}

/** A removal in a commit: of the record and its dependents, each with its change. */
export interface RemovalWrite extends Removal {
  readonly op: 'remove';
}

/** `records`: how many were deleted. `isDone`: the record itself was among them. */
export type PageRemovalResult =
  | { readonly kind: 'removed'; readonly records: number; readonly isDone: boolean }
  | { readonly kind: 'not_found' | 'protected' };

/** The order of a list; the ID breaks ties in the same direction (docs/wire.md#order). */
export interface Sort {
  readonly by: 'created_at' | 'updated_at' | 'id';
  readonly isDescending: boolean;
}

/** A position in a sorted list. `at`: the timestamp of the sort key; undefined for a sort by `id`. */
export interface PagePosition {
  readonly at: number | undefined;
  readonly id: Uuid;
}

/** By offset, with a total; or after a record, without one, at a cost that does not grow with depth. */
export type PageRequest =
  | { readonly kind: 'offset'; readonly offset: number; readonly limit: number }
  | { readonly kind: 'after'; readonly after: PagePosition | undefined; readonly limit: number };

/** Filter, order and page of a list. Plain data. */
export interface ListRequest {
  readonly filter: ParsedFilter;
  readonly sort: Sort;
  readonly page: PageRequest;
  /** In a list of realms: only these; undefined for all. */
  readonly only?: readonly Uuid[];
}

/** A search of the records of all realms. Plain data. */
export interface RealmSearch {
  readonly filter: ParsedFilter;
  /** Only these realms; undefined for all. */
  readonly only: readonly Uuid[] | undefined;
  /** Only realms after this one. */
  readonly after: Uuid | undefined;
  /** With `after`: continue in that realm, after this record. */
  readonly afterId?: Uuid | undefined;
  readonly limit: number;
  /** Whether the number of all matches is wanted. */
  readonly isCounted?: boolean | undefined;
}

export interface RealmSearchPage {
  readonly items: readonly KeyedRecord[];
  /** The last realm that was searched; undefined if all were. */
  readonly through: Uuid | undefined;
  /** The number of all matches, if it was wanted and they are not more than LIMITS.searchCountMax. */
  readonly total?: number;
}

export interface KeyedRecord {
  readonly key: Key;
  readonly record: AnyRecord;
}

/** The newest records of one resource below a record. */
export interface IncludedRecords {
  readonly resource: Resource;
  readonly records: readonly AnyRecord[];
  /** Whether there are older ones. */
  readonly hasMore: boolean;
}

/** A record and, as of the same moment, records below it. */
export interface RecordWithIncluded {
  readonly record: AnyRecord;
  readonly included: readonly IncludedRecords[];
}

export interface ListPage {
  readonly items: readonly KeyedRecord[];
  readonly hasMore: boolean;
  /** The number of matching records, at most a second old; undefined for a page after a record. */
  readonly total: number | undefined;
}

/**
 * Whether work would wait for longer than LIMITS.workWaitMsMax, estimated from recent work of its kind. `realm`: the realm
 * of the work, in any letter case; a realm with more than its share of the queue is overloaded before the others.
 */
export type IsOverloaded = (realm: string | undefined) => boolean;

export interface OverloadChecks {
  /** `commit` and `remove`. */
  readonly write: IsOverloaded;
  readonly get?: IsOverloaded;
  readonly find?: IsOverloaded;
}

/**
 * Stores records. The directory owns this port, each engine implements it, and one contract suite tests all engines for
 * the sentences below. No transaction, row, driver error or SQL crosses it. An engine that cannot answer in time throws,
 * or rejects with, Fault `unavailable`.
 */
export interface Store {
  /** The record with this key, or undefined. One statement; without secrets. */
  get<R extends Resource>(resource: R, key: Key): MaybePromise<RecordOf<R> | undefined>;

  /**
   * The record with this key, and the newest records of each of these child resources, at most LIMITS.includedRecordsMax
   * of each, in the order of a list. One round trip.
   */
  getIncluding(
    resource: Resource,
    key: Key,
    children: readonly Resource[],
  ): MaybePromise<RecordWithIncluded | undefined>;

  /**
   * Lists records of a resource below a scope. A list that is not bounded (docs/guides/lists-and-writes.md#lists) does not
   * run where lookups run, and rejects with Fault `overloaded` if too many of them wait. Undefined if the record that the
   * scope names does not exist.
   */
  list(resource: Resource, scope: KeyPrefix, listing: ListRequest): MaybePromise<ListPage | undefined>;

  /**
   * Finds the only record of a realm with these values, by an index, as `get` returns it. Undefined for none or more than
   * one: then use `list`.
   */
  find(resource: Resource, realm: Uuid, lookup: LookupKey): MaybePromise<KeyedRecord | undefined>;

  /**
   * Searches the records of all realms, in the order of realms. Without a filter it lists them. By a member with a hash column it is
   * one statement over an index without the realm; any other search does not run where lookups run, and rejects with Fault
   * `overloaded` if too many wait.
   */
  searchRealms(resource: Resource, search: RealmSearch): MaybePromise<RealmSearchPage>;

  /**
   * Commits all writes in their order, each with its change, and the idempotency record, or nothing. Several removals
   * together delete at most LIMITS.cascadeRecordsMax records; the one that exceeds it is `too_many`. Each change gets the
   * next sequence number of its realm; the order of sequence numbers is the order of commits.
   */
  commit(writes: readonly (Write | RemovalWrite)[], answer?: IdempotencyRecord): Promise<CommitResult>;

  /** The idempotency record of a request, unless it has expired at `now`. */
  loadIdempotencyRecord(key: IdempotencyRecordKey, now: number): MaybePromise<IdempotencyRecord | undefined>;

  /** Deletes idempotency records that have expired at `now`, at most LIMITS.cascadeRecordsMax. Returns how many. */
  sweepIdempotency(now: number): Promise<number>;

  /**
   * Deletes at most LIMITS.cascadeRecordsMax dependents of a record in one commit, children before parents; if they are all that
   * is left, also the record itself. Otherwise what is left can be read and written, and any process may delete the next page:
   * other writes run between two pages.
   */
  removePage(removal: Omit<Removal, 'expectedRevision'>): Promise<PageRemovalResult>;

  /** Counts the dependents of a record. */
  countBelow(resource: Resource, key: Key): MaybePromise<number>;

  /** The changes of a realm after a sequence number, oldest first, at most `limit`. */
  changes(realm: Uuid, after: number, limit: number): MaybePromise<readonly SequencedChange[]>;

  /** Whether to reject a request before it begins. Undefined for kinds of work that never wait. */
  readonly overloaded: OverloadChecks;

  /**
   * Settles when a read would succeed now; throws or rejects with Fault `unavailable` otherwise. A database on several nodes
   * returns their counts.
   */
  ready(): MaybePromise<NodeCounts | undefined>;
}

/** The nodes of a distributed database. Records on a node that is not reachable cannot be read. */
export interface NodeCounts {
  readonly reachable: number;
  readonly total: number;
}

/** The result of comparing a loaded record with the stored one of the same key. */
export type Comparison = 'same' | 'replace' | 'refuse';

export interface ComparedRecord {
  readonly comparison: Comparison;
  /** Names the members that differ; committed with a replacement. */
  readonly change: Change;
  /** The record that a replacement writes; default: the loaded one. */
  readonly record?: AnyRecord;
}

export interface Load {
  /** Of its guards, `unless` holds where the other record was changed after its `updated_at`, and where it changes no such member. */
  readonly write: Insert;
  /** Compares the stored record, with its secrets as stored, with the loaded one. Pure. */
  compare(stored: AnyRecord): ComparedRecord;
}

export type LoadOutcome =
  | WriteResult
  | { readonly kind: 'same' }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'differs'; readonly members: readonly string[] };

/** The last record that a scan returned. The position with empty IDs is before all records. */
export interface ScanPosition {
  readonly realm: string;
  readonly id: string;
}

/**
 * All records as of one moment; commits after it was opened are not in it. The nodes of a cluster have a moment each, so a realm
 * always has one.
 */
export interface RecordSnapshot {
  /**
   * Records of a resource after a position, with their secrets as stored, in the order of realm and ID, at most `limit`. With
   * `within`, only those of that realm.
   */
  scan(
    resource: Resource,
    after: ScanPosition,
    limit: number,
    within?: Uuid,
  ): MaybePromise<readonly KeyedRecord[]>;
  /** Records below users of a realm from one to the other, in the order of these, of time and ID. */
  scanBelow(resource: Resource, realm: Uuid, first: Uuid, last: Uuid): MaybePromise<readonly KeyedRecord[]>;
  close(): void;
}

/** Reads all records. A separate port: of all requests, only an export uses it. */
export interface Scanner {
  /** Opens a snapshot. It blocks no writer; the engine keeps its rows until it is closed. */
  openSnapshot(): Promise<RecordSnapshot>;
}

/** Bulk writes. A separate port, to keep `Store` small. */
export interface Loader {
  /** The record with this key, with its secrets as stored, or undefined. */
  getStored(resource: Resource, key: Key): MaybePromise<AnyRecord | undefined>;
  /**
   * Writes the records in order, each independently, in one transaction that is committed. With `stopAtFirst` it ends after
   * the first rejected record: there are then fewer outcomes than loads, and earlier records are committed. `not_found`
   * and `foreign_key` do not count as rejected: the missing record may come later.
   */
  load(loads: readonly Load[], stopAtFirst: boolean): Promise<readonly LoadOutcome[]>;
}
