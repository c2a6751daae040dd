import type { Resource } from '../model/resource.ts';
import type { CollectionName, DESCRIPTIONS } from '../model/resources.ts';
import type { Filter } from './filter.ts';
import type {
  ChangesOf,
  CriteriaOf,
  FieldOf,
  KeyOf,
  NewOf,
  PageSortKey,
  RecordWithEtag,
  ResourceRecord,
  ScopeOf,
  SortKey,
} from './record_types.ts';

/** The resource of a collection. */
export type Described<N extends CollectionName> = (typeof DESCRIPTIONS)[N];

export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The collections whose records can be included with a record of this resource. */
export type IncludableIn<R extends Resource> = {
  [N in CollectionName]: Described<N> extends { readonly parent: R; readonly includedAs: string } ? N : never;
}[CollectionName];

/** A record with records below it, newest first. */
export type RecordIncluding<R extends Resource, N extends CollectionName> = RecordWithEtag<R> & {
  /**
   * By collection. If there are more than 100, `links` of the record has a member for the collection; `list` returns all.
   */
  readonly included: { readonly [Name in N]: readonly ResourceRecord<Described<Name>>[] };
};

export interface CreateOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters. Default: a new UUID. The same key and input create one record, not two. */
  readonly idempotencyKey?: string | undefined;
}

export interface WriteOptions extends CallOptions {
  /**
   * The `etag` of the record as read; if the record has changed since, the write fails with status 412. If that error has
   * `isUncertain`, an earlier attempt was lost, and the change may be this call's own.
   */
  readonly ifMatch?: string | undefined;
}

/** `filter` and `sort`, for resources whose lists support them. */
type FilterOptions<R extends Resource, Sort> = [FieldOf<R>] extends [never]
  ? object
  : {
      readonly filter?: Filter<FieldOf<R>> | undefined;
      /** Default `-created_at`, newest first. */
      readonly sort?: Sort | undefined;
    };

export type ListOptions<R extends Resource> = CallOptions &
  FilterOptions<R, SortKey> & {
    /** Records per request, 1 to 100. */
    readonly pageSize?: number | undefined;
  };

export type PageOptions<R extends Resource> = CallOptions &
  FilterOptions<R, PageSortKey> & {
    /** Records to skip, 0 to 10,000. */
    readonly offset?: number | undefined;
    /** Records per page, 1 to 100. */
    readonly limit?: number | undefined;
  };

export interface RecordPage<R extends Resource> {
  readonly records: readonly ResourceRecord<R>[];
  /** Number of records that match the filter. */
  readonly total: number;
}

/** Returns the changes to a record that was read; undefined leaves it unchanged. */
export type Revise<R extends Resource> = (
  record: RecordWithEtag<R>,
) => ChangesOf<R> | undefined | Promise<ChangesOf<R> | undefined>;

/**
 * The records of one resource. Every method throws AuthrealmError for a failed request, and TypeError for an invalid key or
 * option.
 */
export interface Collection<R extends Resource> {
  get(key: KeyOf<R>, options?: CallOptions): Promise<RecordWithEtag<R>>;
  /** All records of a scope, fetched page by page; concurrent creates and deletes neither skip nor repeat other records. */
  list(scope: ScopeOf<R>, options?: ListOptions<R>): AsyncIterable<ResourceRecord<R>>;
  /** One page by offset, with the total. */
  page(scope: ScopeOf<R>, options?: PageOptions<R>): Promise<RecordPage<R>>;
  create(scope: ScopeOf<R>, input: NewOf<R>, options?: CreateOptions): Promise<RecordWithEtag<R>>;
  /** Changes the given members and keeps the others. The last writer wins unless `ifMatch` is set. */
  update(key: KeyOf<R>, changes: ChangesOf<R>, options?: WriteOptions): Promise<RecordWithEtag<R>>;
  /**
   * Reads the record, calls `revise` for the changes, and writes them with `ifMatch`; starts again if the record has changed
   * since. Throws status 412 after 20 attempts, or if a lost attempt may have made the change.
   */
  modify(key: KeyOf<R>, revise: Revise<R>, options?: CallOptions): Promise<RecordWithEtag<R>>;
  delete(key: KeyOf<R>, options?: WriteOptions): Promise<void>;
}

/** Records that can be found in their realm by their values, which are never sent in a URL. */
export interface FindableCollection<R extends Resource> extends Collection<R> {
  find(realm: string, criteria: CriteriaOf<R>, options?: CallOptions): Promise<readonly ResourceRecord<R>[]>;
  /** The existing records among these, in the order of the IDs. */
  getMany(
    realm: string,
    ids: readonly string[],
    options?: CallOptions,
  ): Promise<readonly ResourceRecord<R>[]>;
}

/** Records that can be read together with records below them. */
export interface IncludingCollection<R extends Resource> extends Collection<R> {
  /** The record with the newest 100 records below it in each of these collections, as of one moment, in one request. */
  getIncluding<N extends IncludableIn<R>>(
    key: KeyOf<R>,
    names: readonly N[],
    options?: CallOptions,
  ): Promise<RecordIncluding<R, N>>;
  /** Creates the record and at most 100 records below it in one request: all of them, or none. */
  createIncluding<N extends IncludableIn<R>>(
    scope: ScopeOf<R>,
    input: NewOf<R>,
    included: { readonly [Name in N]: readonly NewOf<Described<Name>>[] },
    options?: CreateOptions,
  ): Promise<RecordIncluding<R, N>>;
}

export type CollectionOf<R extends Resource> = R extends { readonly reverseLookup: object }
  ? FindableCollection<R>
  : [IncludableIn<R>] extends [never]
    ? Collection<R>
    : IncludingCollection<R>;
