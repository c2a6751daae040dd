import type { Change, SequencedChange } from '../domain/change.ts';
import type { Revision, Uuid } from '../domain/id.ts';
import type { AnyRecord, Key, RecordOf, Resource } from '../domain/resource.ts';

/** An embedded engine answers at once, a distant one later: the embedded path never waits a tick it does not need. */
export type MaybePromise<T> = T | Promise<T>;

/** One row to write. The key names the whole chain of parents; a record is never found or moved without it. */
export type Write =
  | { readonly op: 'insert'; readonly resource: Resource; readonly key: Key; readonly record: AnyRecord }
  | {
      readonly op: 'update';
      readonly resource: Resource;
      readonly key: Key;
      readonly record: AnyRecord;
      /** Lands only while the stored record still carries this revision. */
      readonly seen?: Revision;
    }
  | { readonly op: 'delete'; readonly resource: Resource; readonly key: Key };

/**
 * What the engine decided about one write, in the words of the directory.
 * - `landed`: it is in the transaction.
 * - `absent`: there is no such record, parent or realm; for a write with `seen`, none of that revision.
 * - `taken`: another record holds these members (`id`, or a set of the description's `unique`).
 * - `dangling`: this member names a record that the realm does not have, or (on delete) one that is still named.
 */
export type Verdict =
  | { readonly kind: 'landed' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'taken'; readonly members: readonly string[] }
  | { readonly kind: 'dangling'; readonly member: string };

/**
 * Where records rest. The directory owns this port; each engine implements it, and one contract suite holds them all
 * to the sentences below. No transaction, row, driver error or SQL crosses it. An engine that cannot answer in time
 * throws, or rejects with, Fault `unavailable`.
 */
export interface Store {
  /** The record at exactly this key, or undefined. One statement; secrets stay where they are. */
  get<R extends Resource>(resource: R, key: Key): MaybePromise<RecordOf<R> | undefined>;

  /**
   * All writes and all changes land together, or none does. Resolves with `landed` after the commit is on disk;
   * resolves with the first other verdict when a rule is broken. Each change gets the next place in its realm's
   * order, and order of place is order of commit.
   */
  commit(writes: readonly Write[], changes: readonly Change[]): Promise<Verdict>;

  /** The changes of a realm after a place in its order, oldest first, at most `limit`. */
  changes(realm: Uuid, after: number, limit: number): MaybePromise<readonly SequencedChange[]>;

  /** Settles when a read would succeed now; throws or rejects with Fault `unavailable` otherwise. */
  ready(): MaybePromise<void>;
}

/** What a bulk load does with a record whose key is already there. */
export type Judgement = 'same' | 'replace' | 'refuse';

export interface Judged {
  readonly judgement: Judgement;
  /** Names the members that differ; lands with a replacement. */
  readonly change: Change;
  /** What a replacement writes, where it keeps something of the stored record; else the record at hand. */
  readonly record?: AnyRecord;
}

export interface Load {
  readonly write: Extract<Write, { op: 'insert' }>;
  readonly change: Change;
  /** Compares the stored record, secrets included as they are stored, with the one at hand. Pure. */
  judge(stored: AnyRecord): Judged;
}

export type LoadOutcome =
  | Verdict
  | { readonly kind: 'same' }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'differs'; readonly members: readonly string[] };

/** Where a reading in order stands: the last record that was read. The empty one is before all of them. */
export interface Place {
  readonly realm: string;
  readonly id: string;
}

/** One record with its address, secrets as they are stored. */
export interface Stored {
  readonly key: Key;
  readonly record: AnyRecord;
}

/** All records as of one moment, until it is closed. What is committed afterwards is not in it. */
export interface Picture {
  /**
   * Records of a resource behind a place, in the order of realm and identifier, at most `limit`. With `within` none of
   * another realm.
   */
  scan(resource: Resource, after: Place, limit: number, within?: Uuid): MaybePromise<readonly Stored[]>;
  /** How many records of a resource there are, in one realm or in all of them. */
  count(resource: Resource, within?: Uuid): MaybePromise<number>;
  close(): void;
}

/** Reading everything: a port of its own, because no request ever may. */
export interface Scanner {
  /** Takes a picture. Nobody who writes waits for it; the engine keeps what it shows until it is closed. */
  picture(): Promise<Picture>;
}

/** Filling by the thousand: a port of its own, so that the Store stays narrow. */
export interface Loader {
  /**
   * Writes the records in order, each by itself, in one transaction that ends committed. With `stopAtFirst` the
   * first outcome that refuses a record is the last one attempted: the answer is then shorter than the question,
   * and what came before is kept. `absent` and `dangling` do not count as that: what is missing may come later.
   */
  load(loads: readonly Load[], stopAtFirst: boolean): Promise<readonly LoadOutcome[]>;
}
