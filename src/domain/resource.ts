import { z } from 'zod';
import type { ComparableValue, Filterables } from './filter/filter.ts';
import type { Revision, Uuid } from './id.ts';

/** What a member of a record is beyond its shape: where it stands, and how it is kept. All of it optional. */
export interface Annotation {
  /** The object inside `data` that holds the member; `data` itself unless said. */
  readonly within?: 'meta' | 'relationships';
  /** The resource of the same realm whose identifier this is. */
  readonly references?: string;
  /** A second column `<member>_key` holds the folded key of contract 8, row 16. */
  readonly foldedKeyColumn?: true;
  /** A further column `<member>_crc` holds the CRC-32 of what it is compared by: a number is found faster than a text. */
  readonly hashColumn?: true;
  /** Answered never. `sealed`: kept as a ciphertext of the keyring. `kept`: kept as it arrives. */
  readonly secret?: 'sealed' | 'kept';
  /** It says something about the person a user is: in the log it stands encrypted under the key of that user. */
  readonly personal?: true;
  /** Answered never, though it is no secret. */
  readonly hidden?: true;
  /** Who may say it over HTTP: whoever creates the record, what comes later being ignored, or nobody. Else any writer. */
  readonly writableBy?: 'creator' | 'nobody';
  /** Whoever creates the record over HTTP must say it. Records that were brought along may be without. */
  readonly requiredOnCreate?: true;
  /** What it is where nobody says: the value of this member without this ending (contract 8, row 30). */
  readonly derived?: { readonly from: string; readonly without: string };
  /** What it is where nobody says: this installation, as an origin of this type (contract 8, row 31). */
  readonly installation?: string;
  /** What is learned by asking the address in this member, where other servers may be asked (contract 8, row 30). */
  readonly discoveredFrom?: string;
  /** It must be an e-mail address where another record says so (contract 8, row 14). */
  readonly emailIf?: ReferenceCondition;
  /** The record that is named by the member `reference` should have the same value in its own `member`. */
  readonly sameAs?: { readonly reference: string; readonly member: string };
  /** It stays what it is while a record refers to this one. */
  readonly immutableWhileReferenced?: true;
}

/** What the record that is named by the member `reference` says when its own `member` is `is`. */
export interface ReferenceCondition {
  readonly reference: string;
  readonly member: string;
  readonly equals: string;
}

/** Placements by schema: a zod schema says what a member looks like, this registry says the rest. */
export const annotations = z.registry<Annotation>();

/** A schema whose annotation the compiler knows too; at run time the registry does. */
type Annotated<S, P> = S & { readonly '~annotation'?: P };

export function annotate<S extends z.ZodType, const P extends Annotation>(
  schema: S,
  annotation: P,
): Annotated<S, P> {
  annotations.add(schema, annotation);
  return schema;
}

/** The identifier of a record of another resource in the same realm. */
export function reference(name: string) {
  return annotate(
    z
      .string()
      .regex(/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be the identifier of a record')
      .toLowerCase()
      .meta({ format: 'uuid' }),
    // It stays with the profile it was made for (contract 8, row 10).
    { references: name, writableBy: 'creator' },
  );
}

export type Members = Readonly<Record<string, z.ZodType>>;

/** A password as it is said: never kept, but for the hash that is made of it. */
export interface PasswordInput {
  readonly schema: z.ZodType<string>;
  /** The member that holds its hash. */
  readonly hash: string;
  /** The member that holds whether it was normalised before. */
  readonly isNormalised: string;
}

/** The reverse lookup of a resource in its realm. */
export interface LookupRules {
  readonly filterables: Filterables;
  /** The sets of members that a filter may name, each with one value; every one is answered from an index. */
  readonly by: readonly (readonly string[])[];
}

/** One value for each member of a set of `reverseLookup.by`, in the order of the set. */
export interface LookupKey {
  readonly members: readonly string[];
  readonly values: readonly ComparableValue[];
}

/**
 * A resource as data. Validation, TypeScript types, OpenAPI, SQL, routes and links are all derived from it; a
 * quirk of the wire is a value here, never a branch elsewhere. It has no callbacks.
 */
export interface Resource<M extends Members = Members> {
  /** The hyphenated noun: event names and documents use it. */
  readonly name: string;
  /** The `type` member of its records. */
  readonly type: string;
  /** The path segment of its collection. */
  readonly collection: string;
  readonly table: string;
  /** The column that names a record of this resource in the tables below it. */
  readonly foreignKey?: 'realm_id' | 'user_id';
  /** The resource whose records its own hang under; none for realms. */
  readonly parent: Resource | undefined;
  /** What stands before the path in the self link of a single record (contract 3.2). */
  readonly selfPrefix: '/v2' | '';
  /** The scope that reads it is `<scope>:read`, the one that writes it `<scope>:write`. */
  readonly scope: string;
  readonly members: M;
  /** Sets of columns that no two records of one realm share; decided by the index, and only there. */
  readonly unique: readonly (readonly string[])[];
  /** What callers say over HTTP and no record holds. */
  readonly inputs?: Readonly<Record<string, PasswordInput>>;
  /** What an `id` in the body of a PUT must be (contract 8, row 9). */
  readonly bodyId: 'own' | 'own_or_parent' | 'ignored';
  /** Further links of a record, by name: addresses below the base URL with `{store}`, `{realm}` and `{id}` in them. */
  readonly extraLinks?: Readonly<Record<string, string>>;
  /** What its lists can be narrowed by; lists of other resources ignore `filter` and `sort` (contract 8, row 29). */
  readonly filterables?: Filterables;
  readonly reverseLookup?: LookupRules;
  /** The same in all realms that a token may read. */
  readonly searchAllRealms?: LookupRules;
  /** A record in which this member is true is not removed. */
  readonly protectedBy?: string;
  /** The public sentence of the OpenAPI document. */
  readonly summary: string;
}

/** A description, every word of which the compiler knows: the client library infers its types from it. */
export function resource<const D extends Resource>(description: D): D {
  return Object.freeze(description);
}

/** A record as the program holds it: flat, instants as milliseconds since the epoch. */
export type RecordOf<R extends Resource> = {
  readonly id: Uuid;
  readonly created_at: number;
  readonly updated_at: number;
  readonly revision: Revision;
} & z.output<z.ZodObject<R['members']>>;

/** A record of whichever resource. */
export type AnyRecord = {
  readonly id: Uuid;
  readonly created_at: number;
  readonly updated_at: number;
  readonly revision: Revision;
  readonly [member: string]: unknown;
};

/** The address of a record: realm first, then down the path. A record cannot be named without its realm. */
export type Key = readonly [realm: Uuid, ...path: Uuid[]];

/** The resources from the realm down to this one. */
export function ancestry(resource: Resource): readonly Resource[] {
  return resource.parent ? [...ancestry(resource.parent), resource] : [resource];
}

/** The columns that hold a record's address, in the order of its `Key`. */
export function keyColumns(resource: Resource): readonly string[] {
  return ancestry(resource).map((ancestor) =>
    ancestor.parent && ancestor === resource ? 'id' : (ancestor.foreignKey ?? 'id'),
  );
}

/** Where records hang, or some of it: empty for all there are, a realm, a realm and a user. */
export type KeyPrefix = readonly Uuid[];

/** The address of the record above, or undefined for a realm. */
export function parentKey(key: Key): Key | undefined {
  const [realm, ...path] = key;
  return path.length === 0 ? undefined : [realm, ...path.slice(0, -1)];
}

export interface Member {
  readonly name: string;
  readonly schema: z.ZodType;
  readonly annotation: Annotation;
}

const members = new WeakMap<Resource, readonly Member[]>();

/** The members of a resource with their annotations, in the order of the description. Derived once: every write asks. */
export function membersOf(resource: Resource): readonly Member[] {
  const known = members.get(resource);
  if (known) return known;
  const found = Object.entries(resource.members).map(([name, schema]) => ({
    name,
    schema,
    annotation: annotations.get(schema) ?? {},
  }));
  members.set(resource, Object.freeze(found));
  return found;
}

/** Whether callers may see a member. */
export function isVisible({ annotation }: Member): boolean {
  return annotation.secret === undefined && annotation.hidden === undefined;
}

/** The resource whose records this member names. */
export function referencedResource(resource: Resource, member: string, all: readonly Resource[]): Resource {
  const name = membersOf(resource).find((each) => each.name === member)?.annotation.references;
  const found = all.find((other) => other.name === name);
  if (!found) throw new Error(`${resource.name}.${member} names no resource`);
  return found;
}

/** The member that is learned by asking another server, and the member that says where. */
export interface DiscoveredMember {
  readonly member: string;
  readonly url: string;
}

export function discoveredMember(resource: Resource): DiscoveredMember | undefined {
  const learned = membersOf(resource).find(({ annotation }) => annotation.discoveredFrom !== undefined);
  const url = learned?.annotation.discoveredFrom;
  return learned && url !== undefined ? { member: learned.name, url } : undefined;
}
