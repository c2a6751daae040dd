import type { Resource } from '../model/resource.ts';

/** All types below are inferred from the descriptions in model/resources.ts; none names a member. */

/** The annotation of a member, as a type. */
type AnnotationOf<S> = S extends { readonly '~annotation'?: infer P }
  ? unknown extends P
    ? Record<never, never>
    : NonNullable<P>
  : Record<never, never>;

type Invisible = { readonly secret: unknown } | { readonly hidden: true } | { readonly shownIn: string };

type Members<R extends Resource> = R['members'];

/** Members that responses contain. */
type VisibleName<M> = { [N in keyof M]: AnnotationOf<M[N]> extends Invisible ? never : N }[keyof M];

/** Writable members, except where `writableBy` is one of these. */
type WritableName<M, Not> = {
  [N in keyof M]: AnnotationOf<M[N]> extends { readonly writableBy: Not } ? never : N;
}[keyof M];

/** The members among these that are required to create a record. */
type RequiredName<M, N extends keyof M> = {
  [K in N]: AnnotationOf<M[K]> extends { readonly requiredOnCreate: true }
    ? K
    : undefined extends InputOf<M[K]>
      ? never
      : K;
}[N];

/** Input and output type of a zod schema. */
type InputOf<S> = S extends { readonly _zod: { readonly input: infer I } } ? I : never;
type OutputOf<S> = S extends { readonly _zod: { readonly output: infer O } } ? O : never;

type InputValue<S> = Exclude<InputOf<S>, undefined>;
/** Absent members are null in responses. */
type ResponseValue<S> = Exclude<OutputOf<S>, undefined> | (undefined extends OutputOf<S> ? null : never);

/** Write-only members, passwords for example. */
type InputName<R extends Resource> = R extends { readonly inputs: infer I } ? keyof I : never;

/** The IDs in the path of a record, from its realm to its own. */
export type KeyOf<R extends Resource> = Resource extends R['parent']
  ? readonly string[]
  : R['parent'] extends Resource
    ? readonly [...KeyOf<R['parent']>, id: string]
    : readonly [id: string];

/** The IDs in the path of a collection: the key of the record above; empty for realms. */
export type ScopeOf<R extends Resource> = Resource extends R['parent']
  ? readonly string[]
  : R['parent'] extends Resource
    ? KeyOf<R['parent']>
    : readonly [];

/** The properties that every record has. */
interface RecordMetadata<R extends Resource> {
  readonly id: string;
  /** The key for `get`, `update`, `modify` and `delete`. */
  readonly key: KeyOf<R>;
  /** The key of the record above: of a link, its user. */
  readonly parent: ScopeOf<R>;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly created_at: string;
  readonly updated_at: string;
  /** Absolute URLs, `self` among them. */
  readonly links: Readonly<Record<string, string>>;
}

/** A record of a list: every member of its description except secrets, in one flat object. */
export type ResourceRecord<R extends Resource> = RecordMetadata<R> & {
  readonly [N in VisibleName<Members<R>>]: ResponseValue<Members<R>[N]>;
};

/** A record of a single-record response. */
export type RecordWithEtag<R extends Resource> = ResourceRecord<R> & {
  /** The version of the record, for `ifMatch`. */
  readonly etag: string;
};

/** The input that creates a record. */
export type NewOf<R extends Resource> = {
  readonly [N in RequiredName<Members<R>, WritableName<Members<R>, 'none' | 'offline'>>]: InputValue<
    Members<R>[N]
  >;
} & {
  readonly [N in WritableName<Members<R>, 'none'>]?: InputValue<Members<R>[N]>;
} & { readonly [N in InputName<R>]: string };

/** The changes to a record; members that are left out keep their values. */
export type ChangesOf<R extends Resource> = {
  readonly [N in WritableName<Members<R>, 'none' | 'creator'>]?: InputValue<Members<R>[N]>;
} & { readonly [N in InputName<R>]?: string };

/** The attributes that can be filtered by; never for resources without filters. */
export type FieldOf<R extends Resource> = R extends { readonly filterables: infer F }
  ? keyof F & string
  : Resource extends R
    ? string
    : never;

/** One of the sets of members by which records can be found in their realm. */
export type CriteriaOf<R extends Resource> = R extends { readonly reverseLookup: { readonly by: infer Sets } }
  ? Sets extends readonly (infer Set)[]
    ? Set extends readonly string[]
      ? { readonly [N in Set[number]]: string }
      : never
    : never
  : Resource extends R
    ? Readonly<Record<string, string>>
    : never;

/** The order of a list: an attribute that no write changes, with `-` before it for descending order. */
export type SortKey = `${'' | '-'}${'created_at' | 'id'}`;

/** The order of a page by offset. */
export type PageSortKey = SortKey | `${'' | '-'}updated_at`;
