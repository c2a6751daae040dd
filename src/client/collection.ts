import type { Resource } from '../domain/resource.ts';
import type { Filter } from './filter.ts';
import type {
  ChangesOf,
  CriteriaOf,
  FieldOf,
  KeyOf,
  NewOf,
  RecordOf,
  ScopeOf,
  SortKey,
  TaggedOf,
} from './shapes.ts';

export interface CallOptions {
  /** Ends the call early; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface CreateOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters; minted unless given. The same key and input create one record, not two. */
  readonly idempotencyKey?: string | undefined;
}

export interface WriteOptions extends CallOptions {
  /**
   * The `etag` of the record that was seen; where it has changed since, the write is refused with status 412. If that error
   * is uncertain, an attempt was lost, and the change may be this call's own.
   */
  readonly ifMatch?: string | undefined;
}

/** `filter` and `sort` are there where the resource has them; the service ignores them elsewhere. */
type Narrowing<R extends Resource> = [FieldOf<R>] extends [never]
  ? object
  : {
      readonly filter?: Filter<FieldOf<R>> | undefined;
      /** `-created_at`, newest first, unless given. */
      readonly sort?: SortKey | undefined;
    };

export type ListOptions<R extends Resource> = CallOptions &
  Narrowing<R> & {
    /** Records that one request asks for, 1 to 100. */
    readonly pageSize?: number | undefined;
  };

export type PageOptions<R extends Resource> = CallOptions &
  Narrowing<R> & {
    /** Records before the page, 0 to 10,000. */
    readonly offset?: number | undefined;
    /** Records of the page, 1 to 100. */
    readonly limit?: number | undefined;
  };

export interface Page<R extends Resource> {
  readonly records: readonly RecordOf<R>[];
  /** All that the filter lets through. */
  readonly total: number;
}

/** What a change is made of the record that was read; undefined leaves it as it is. */
export type Revise<R extends Resource> = (
  record: TaggedOf<R>,
) => ChangesOf<R> | undefined | Promise<ChangesOf<R> | undefined>;

/**
 * The records of one resource. Every call throws AuthrealmError where it is not answered as it should be, and TypeError
 * for an address or an option that no request can carry.
 */
export interface Collection<R extends Resource> {
  get(key: KeyOf<R>, options?: CallOptions): Promise<TaggedOf<R>>;
  /** All records of a scope, page by page as they are taken; records that come or go meanwhile disturb none of the others. */
  list(scope: ScopeOf<R>, options?: ListOptions<R>): AsyncIterable<RecordOf<R>>;
  /** One page, counted from the start, with the total. */
  page(scope: ScopeOf<R>, options?: PageOptions<R>): Promise<Page<R>>;
  create(scope: ScopeOf<R>, input: NewOf<R>, options?: CreateOptions): Promise<TaggedOf<R>>;
  /** Changes what is named and leaves the rest. The last writer wins, unless `ifMatch` is given. */
  update(key: KeyOf<R>, changes: ChangesOf<R>, options?: WriteOptions): Promise<TaggedOf<R>>;
  /**
   * Reads, asks what to change, and writes on condition that nobody wrote meanwhile; reads and asks again where somebody
   * did. Throws with status 412 after 20 attempts, or where a lost attempt leaves open whether the change was made.
   */
  modify(key: KeyOf<R>, revise: Revise<R>, options?: CallOptions): Promise<TaggedOf<R>>;
  delete(key: KeyOf<R>, options?: WriteOptions): Promise<void>;
}

/** Records that are found in their realm by what they say. Nothing that is looked for stands in a URL. */
export interface FindableCollection<R extends Resource> extends Collection<R> {
  find(realm: string, criteria: CriteriaOf<R>, options?: CallOptions): Promise<readonly RecordOf<R>[]>;
  /** Those of these records that are there, in the order of the identifiers. */
  getMany(realm: string, ids: readonly string[], options?: CallOptions): Promise<readonly RecordOf<R>[]>;
}

export type CollectionOf<R extends Resource> = R extends { readonly reverseLookup: object }
  ? FindableCollection<R>
  : Collection<R>;
