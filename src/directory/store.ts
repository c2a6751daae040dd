import type { Change, ChangeOrigin, SequencedChange } from '../domain/change.ts';
import type { ParsedFilter } from '../domain/filter/filter.ts';
import type { Revision, Uuid } from '../domain/id.ts';
import type {
  AnyRecord,
  Key,
  KeyPrefix,
  LookupKey,
  RecordOf,
  ReferenceCondition,
  Resource,
} from '../domain/resource.ts';

/** An embedded engine answers at once, a distant one later: the embedded path never waits a tick it does not need. */
export type MaybePromise<T> = T | Promise<T>;

/** What must hold of a record and of another one together. It is looked at in the transaction of the write. */
export type Guard =
  /** Refused where the record that `saying.reference` names says so. */
  | { readonly kind: 'unless'; readonly member: string; readonly saying: ReferenceCondition }
  /** Refused where the record that `reference` names has another value in its member `of`. */
  | { readonly kind: 'same'; readonly member: string; readonly reference: string; readonly of: string }
  /**
   * Of a patch: refused where it would change this member while a record refers to this one. `saidAs` is the member by
   * which callers change it.
   */
  | { readonly kind: 'settled'; readonly member: string; readonly saidAs: string };

/** Some members of a record and what they become; with none, the record is only touched. */
export interface Patch {
  readonly members: Readonly<Record<string, unknown>>;
  readonly revision: Revision;
  /** Becomes `updated_at`, unless that is later already. */
  readonly at: number;
}

interface AnyWrite {
  readonly resource: Resource;
  /** The whole chain of parents; a record is never found or moved without it. */
  readonly key: Key;
  /** Lands with the record; the audit log and the feed report it. */
  readonly change?: Change;
}

export interface Insert extends AnyWrite {
  readonly op: 'insert';
  readonly record: AnyRecord;
  readonly guards?: readonly Guard[];
}

export interface PatchWrite extends AnyWrite {
  readonly op: 'patch';
  readonly patch: Patch;
  /** Lands only while the stored record still carries this revision. */
  readonly expectedRevision?: Revision;
  readonly guards?: readonly Guard[];
}

/** Puts a whole record in the place of the stored one; of imports. */
export interface Replacement extends AnyWrite {
  readonly op: 'replace';
  readonly record: AnyRecord;
}

/** One row to write. */
export type Write = Insert | PatchWrite | Replacement;

/**
 * What the engine decided about one write, in the words of the directory.
 * - `written`: it is in the transaction. `patched` holds the records that the patches left, in their order, as `get`
 *   would answer them; absent where there was none.
 * - `not_found`: there is no such record, parent or realm, or it is being purged.
 * - `revision_mismatch`: the stored record has another revision than `expectedRevision`.
 * - `unique`: another record has these values (`id`, or a set of the description's `unique`).
 * - `foreign_key`: this member names a record that the realm does not have.
 * - `guard`: this guard does not hold.
 * - `already_answered`: the same request has an idempotency record already.
 */
export type WriteResult =
  | { readonly kind: 'written'; readonly patched?: readonly AnyRecord[] }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'revision_mismatch' }
  | { readonly kind: 'unique'; readonly members: readonly string[] }
  | { readonly kind: 'foreign_key'; readonly member: string }
  | { readonly kind: 'guard'; readonly guard: Guard }
  | { readonly kind: 'already_answered' };

/** What an idempotency record is found by. */
export interface IdempotencyRecordKey {
  /** The nil UUID where the request names no realm. */
  readonly realm: Uuid;
  readonly clientId: string;
  /** A digest, under the keyring, of method, path and key. */
  readonly key: string;
}

/** The stored answer to a request with an `Idempotency-Key`, for its repetition. */
export interface IdempotencyRecord extends IdempotencyRecordKey {
  /** A digest of the body, under the keyring. */
  readonly body: string;
  readonly status: number;
  readonly recordId: Uuid | undefined;
  /** The user that the answer is about: the record is deleted with the user. */
  readonly user: Uuid | undefined;
  /** The answer, encrypted. */
  readonly sealed: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly expiresAt: number;
}

/** A record that goes, with everything below it and everything that refers to it. */
export interface Removal {
  readonly resource: Resource;
  readonly key: Key;
  /** Lands only while the stored record still carries this revision. */
  readonly expectedRevision?: Revision;
  readonly origin: ChangeOrigin;
  /** New revisions of the users that lose a record. */
  readonly mintRevision: () => Revision;
  /** Set for an erasure: the log entries hold no values. */
  readonly isErasure?: true;
}

/**
 * Where several hold, the first of `not_found`, `protected`, `too_many` and `revision_mismatch`: a precondition decides
 * last (RFC 9110, 13.2.1).
 * - `removed`: it is gone, with all it took along; each of them left its change.
 * - `protected`: the description protects this record from removal (`keptBy`).
 * - `too_many`: more than LIMITS.cascadeRecordsMax records would be removed with it, or more idempotency records.
 */
export type RemoveResult = {
  readonly kind: 'removed' | 'not_found' | 'revision_mismatch' | 'protected' | 'too_many';
};

/** `records`: how many went in this step. `isDone`: the record itself was among them. */
export type PurgeResult =
  | { readonly kind: 'purged'; readonly records: number; readonly isDone: boolean }
  | { readonly kind: 'not_found' | 'protected' };

/** The order of a list; the identifier breaks ties in the same direction (contract 8, row 27). */
export interface Sort {
  readonly by: 'created_at' | 'updated_at' | 'id';
  readonly isDescending: boolean;
}

/** A record's place in a list that is sorted so. `at` is the instant it is sorted by; undefined where that is `id`. */
export interface PagePosition {
  readonly at: number | undefined;
  readonly id: Uuid;
}

/** Counted from the start, with a total; or behind a record, without one, at a cost that does not grow with depth. */
export type PageRequest =
  | { readonly kind: 'offset'; readonly offset: number; readonly limit: number }
  | { readonly kind: 'after'; readonly after: PagePosition | undefined; readonly limit: number };

/** Which records of a scope, in which order, and which part of them. Plain data. */
export interface ListRequest {
  readonly filter: ParsedFilter;
  readonly sort: Sort;
  readonly page: PageRequest;
  /** Of realms: only these; undefined for all of them. */
  readonly only?: readonly Uuid[];
}

/** A record with its address. */
export interface KeyedRecord {
  readonly key: Key;
  readonly record: AnyRecord;
}

export interface ListPage {
  readonly items: readonly KeyedRecord[];
  readonly hasMore: boolean;
  /** All that the filter lets through; undefined for a page behind a record. At most a second old. */
  readonly total: number | undefined;
}

/**
 * Whether work would wait for longer than LIMITS.workWaitMsMax, by what the last of its kind took. The realm is the one it
 * is about, in any letter case: one that has more than its part of what waits is crowded before the others are.
 */
export type IsOverloaded = (realm: string | undefined) => boolean;

export interface OverloadChecks {
  /** `commit` and `remove`. */
  readonly write: IsOverloaded;
  readonly get?: IsOverloaded;
  readonly find?: IsOverloaded;
}

/**
 * Where records rest. The directory owns this port; each engine implements it, and one contract suite holds them all
 * to the sentences below. No transaction, row, driver error or SQL crosses it. An engine that cannot answer in time
 * throws, or rejects with, Fault `unavailable`.
 */
export interface Store {
  /** The record at exactly this key, or undefined. One statement; secrets stay where they are. */
  get<R extends Resource>(resource: R, key: Key): MaybePromise<RecordOf<R> | undefined>;

  /**
   * Records of a resource below a scope. What could touch more than LIMITS.listRecordsInlineMax rows does not run where
   * lookups run; where too much of it waits, rejects with Fault `overloaded`. Undefined where the record that the scope
   * names is not there.
   */
  list(resource: Resource, scope: KeyPrefix, listing: ListRequest): MaybePromise<ListPage | undefined>;

  /**
   * The one record of a realm that says what is sought, by an index, as `get` would answer it. Undefined where there is
   * none or more than one: then use `list`.
   */
  find(resource: Resource, realm: Uuid, sought: LookupKey): MaybePromise<KeyedRecord | undefined>;

  /**
   * The values of a member that records of a realm have, each once and in order, at most `limit`: of one that an index has
   * right behind the realm.
   */
  distinctValues(
    resource: Resource,
    realm: Uuid,
    member: string,
    limit: number,
  ): MaybePromise<readonly string[]>;

  /**
   * Commits all writes, each with its change, and the idempotency record, or nothing. Resolves with `written` after the commit
   * is on disk, or with the first other result where a rule is violated. Each change gets the next sequence number of its realm;
   * the order of sequence numbers is the order of commits.
   */
  commit(writes: readonly Write[], answer?: IdempotencyRecord): Promise<WriteResult>;

  /**
   * The idempotency record of a request, unless it has expired at `now`, or its realm or its user is being
   * purged.
   */
  loadIdempotencyRecord(
    place: IdempotencyRecordKey,
    now: number,
  ): MaybePromise<IdempotencyRecord | undefined>;

  /** Deletes idempotency records that have expired at `now`, at most LIMITS.cascadeRecordsMax. Returns how many. */
  sweepIdempotency(now: number): Promise<number>;

  /** Removes a record and all that goes with it in one commit, each with its change; or nothing. */
  remove(removal: Removal): Promise<RemoveResult>;

  /**
   * Removes at most LIMITS.cascadeRecordsMax of what a record takes along, or at last the record itself, in one commit.
   * From the first step on the record is not found, and nothing can be written below it or refer to it. Call it until it
   * is done; any process may make the next call. Other writes run between two steps.
   */
  purge(removal: Omit<Removal, 'expectedRevision'>): Promise<PurgeResult>;

  /** How many records would go with this one. Rejects with Fault `overloaded` where too much of this waits. */
  countBelow(resource: Resource, key: Key): MaybePromise<number>;

  /** The changes of a realm after a place in its order, oldest first, at most `limit`. */
  changes(realm: Uuid, after: number, limit: number): MaybePromise<readonly SequencedChange[]>;

  /** Whether to refuse a request before it begins. Undefined for kinds of work that never wait. */
  readonly overloaded: OverloadChecks;

  /** Settles when a read would succeed now; throws or rejects with Fault `unavailable` otherwise. */
  ready(): MaybePromise<void>;
}

/** What a bulk load does with a record whose key is already there. */
export type Comparison = 'same' | 'replace' | 'refuse';

export interface ComparedRecord {
  readonly comparison: Comparison;
  /** Names the members that differ; committed with a replacement. */
  readonly change: Change;
  /** What a replacement writes, where it keeps something of the stored record; else the record at hand. */
  readonly record?: AnyRecord;
}

export interface Load {
  /** Nobody looks at guards while loading. */
  readonly write: Omit<Insert, 'guards' | 'change'>;
  readonly change: Change;
  /** Compares the stored record, secrets included as they are stored, with the one at hand. Pure. */
  compare(stored: AnyRecord): ComparedRecord;
}

export type LoadOutcome =
  | WriteResult
  | { readonly kind: 'same' }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'differs'; readonly members: readonly string[] };

/** The last record that a scan returned. The empty position is before all records. */
export interface ScanPosition {
  readonly realm: string;
  readonly id: string;
}

/** A record with its address, secrets as they are stored. */
export type StoredRecord = KeyedRecord;

/** All records as of one moment, until it is closed. What is committed afterwards is not in it. */
export interface RecordSnapshot {
  /**
   * Records of a resource behind a place, in the order of realm and identifier, at most `limit`. With `within` none of
   * another realm.
   */
  scan(
    resource: Resource,
    after: ScanPosition,
    limit: number,
    within?: Uuid,
  ): MaybePromise<readonly StoredRecord[]>;
  /** How many records of a resource there are, in one realm or in all of them. */
  count(resource: Resource, within?: Uuid): MaybePromise<number>;
  close(): void;
}

/** Reading everything: a port of its own, because no request ever may. */
export interface Scanner {
  /** Takes a picture. Nobody who writes waits for it; the engine keeps what it shows until it is closed. */
  openSnapshot(): Promise<RecordSnapshot>;
}

/** Filling by the thousand: a port of its own, so that the Store stays narrow. */
export interface Loader {
  /**
   * Writes the records in order, each by itself, in one transaction that ends committed. With `stopAtFirst` the
   * first outcome that refuses a record is the last one attempted: the answer is then shorter than the question,
   * and what came before is kept. `not_found` and `foreign_key` do not count: the missing record may come later.
   */
  load(loads: readonly Load[], stopAtFirst: boolean): Promise<readonly LoadOutcome[]>;
}
