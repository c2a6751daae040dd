import type { Resource } from '../domain/resource.ts';

/** Everything below is inferred from the descriptions in domain/resources.ts; no member is named here. */

/** How a member is placed, as the compiler knows it. */
type PlacementOf<S> = S extends { readonly '~placement'?: infer P }
  ? unknown extends P
    ? Record<never, never>
    : NonNullable<P>
  : Record<never, never>;

type Unseen = { readonly secret: unknown } | { readonly hidden: true };

type Members<R extends Resource> = R['members'];

/** Members that an answer shows. */
type SeenName<M> = { [N in keyof M]: PlacementOf<M[N]> extends Unseen ? never : N }[keyof M];

/** Members that may be said, unless `saidBy` is one of these. */
type SayableName<M, Not> = {
  [N in keyof M]: PlacementOf<M[N]> extends { readonly saidBy: Not } ? never : N;
}[keyof M];

/** Of these members, those that whoever creates a record must say. */
type AskedName<M, N extends keyof M> = {
  [K in N]: PlacementOf<M[K]> extends { readonly asked: true }
    ? K
    : undefined extends InputOf<M[K]>
      ? never
      : K;
}[N];

/** What a schema takes and what it makes of it, as zod tells the compiler. */
type InputOf<S> = S extends { readonly _zod: { readonly input: infer I } } ? I : never;
type OutputOf<S> = S extends { readonly _zod: { readonly output: infer O } } ? O : never;

type Said<S> = Exclude<InputOf<S>, undefined>;
/** What a record is without is null in an answer. */
type Shown<S> = Exclude<OutputOf<S>, undefined> | (undefined extends OutputOf<S> ? null : never);

/** What is said and never answered, passwords for one. */
type InputName<R extends Resource> = R extends { readonly inputs: infer I } ? keyof I : never;

/** The address of a record, as identifiers: its realm, then down the path to its own. */
export type KeyOf<R extends Resource> = Resource extends R['parent']
  ? readonly string[]
  : R['parent'] extends Resource
    ? readonly [...KeyOf<R['parent']>, id: string]
    : readonly [id: string];

/** Where records hang: the address of the record above; of realms, the empty one. */
export type ScopeOf<R extends Resource> = Resource extends R['parent']
  ? readonly string[]
  : R['parent'] extends Resource
    ? KeyOf<R['parent']>
    : readonly [];

/** What is the same of every record. */
export interface Stamped<R extends Resource> {
  readonly id: string;
  /** The address, ready to be handed to `get`, `update`, `modify` and `delete`. */
  readonly key: KeyOf<R>;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly created_at: string;
  readonly updated_at: string;
  /** Absolute addresses, `self` among them. */
  readonly links: Readonly<Record<string, string>>;
}

/** A record as a list has it. Every member of its description, flat, secrets left out. */
export type RecordOf<R extends Resource> = Stamped<R> & {
  readonly [N in SeenName<Members<R>>]: Shown<Members<R>[N]>;
};

/** A record that was asked for by itself. */
export type TaggedOf<R extends Resource> = RecordOf<R> & {
  /** The version of the record, for `ifMatch`. */
  readonly etag: string;
};

/** What is said to create a record. */
export type NewOf<R extends Resource> = {
  readonly [N in AskedName<Members<R>, SayableName<Members<R>, 'nobody'>>]: Said<Members<R>[N]>;
} & {
  readonly [N in SayableName<Members<R>, 'nobody'>]?: Said<Members<R>[N]>;
} & { readonly [N in InputName<R>]: string };

/** What is said to change a record; what is left out stays as it is. */
export type ChangesOf<R extends Resource> = {
  readonly [N in SayableName<Members<R>, 'nobody' | 'creator'>]?: Said<Members<R>[N]>;
} & { readonly [N in InputName<R>]?: string };

/** The attributes that a list can be narrowed by; none where the resource has no filters. */
export type FieldOf<R extends Resource> = R extends { readonly filterables: infer F }
  ? keyof F & string
  : Resource extends R
    ? string
    : never;

/** One of the sets of members by which records are found in their realm. */
export type CriteriaOf<R extends Resource> = R extends { readonly reverseLookup: { readonly by: infer Sets } }
  ? Sets extends readonly (infer Set)[]
    ? Set extends readonly string[]
      ? { readonly [N in Set[number]]: string }
      : never
    : never
  : Resource extends R
    ? Readonly<Record<string, string>>
    : never;

/** The order of a list: an attribute, `-` before it for the newest or highest first. */
export type SortKey = `${'' | '-'}${'created_at' | 'updated_at' | 'id'}`;
