import { z } from 'zod';
import type { ComparableValue, Filterables } from './filter/filter.ts';
import type { Revision, Uuid } from './id.ts';
import { identifier } from './rule.ts';

/** The position, storage and rules of a member, beyond its schema. */
export interface Annotation {
  /** The object inside `data` that holds the member; default: `data` itself. */
  readonly within?: 'meta' | 'relationships';
  /** The resource in the same realm whose ID this is. */
  readonly references?: string;
  /** A second column `<member>_key` holds the folded key (docs/wire.md#folded-keys). */
  readonly foldedKeyColumn?: true;
  /** A column `<member>_crc` holds the CRC-32 of the compared value: numbers are found faster than texts. */
  readonly hashColumn?: true;
  /** Never returned. `sealed`: stored encrypted with the keyring. `plain`: stored as it is. */
  readonly secret?: 'sealed' | 'plain';
  /** Personal data: the log holds it encrypted with the key of its user. */
  readonly personal?: true;
  /** Never returned, although it is not a secret. */
  readonly hidden?: true;
  /** Imported and exported by the commands alone, as secrets are, and not over HTTP. */
  readonly commandOnly?: true;
  /** Responses omit it where it has this value, its default. */
  readonly omittedIf?: boolean;
  /** A write of this other member gives it its default. */
  readonly resetBy?: string;
  /** Returned as a part of this other resource instead (docs/wire.md#settings). */
  readonly shownIn?: string;
  /**
   * Who may write it over HTTP: the creator of the record (ignored in updates), every writer of a service that is offline
   * (ignored by others), or none. Default: every writer.
   */
  readonly writableBy?: 'creator' | 'offline' | 'none';
  /** Required in a create over HTTP. Imported records may lack it. */
  readonly requiredOnCreate?: true;
  /** Default: this installation, as an origin of this type (docs/wire.md#realms). */
  readonly installation?: string;
  /** Discovered from the URL in `member`, unless the service is offline. An update of the URL states `secret` (docs/wire.md#oidc-profiles). */
  readonly discoveredFrom?: { readonly member: string; readonly suffix: string; readonly secret: string };
  /** It must be an e-mail address if this condition holds (docs/wire.md#password-profiles). */
  readonly emailIf?: ReferenceCondition;
  /** The record that the member `reference` names should have the same value in its `member`. */
  readonly sameAs?: { readonly reference: string; readonly member: string };
  /** It cannot change while a record refers to this one that should have the same value, and has another. */
  readonly immutableWhileReferenced?: true;
}

/** Holds if `member` of the record that `reference` names has the value `equals`. */
export interface ReferenceCondition {
  readonly reference: string;
  readonly member: string;
  readonly equals: string;
}

export const annotations = z.registry<Annotation>();

/** A schema with the type of its annotation, for the compiler. At run time the registry has it. */
type Annotated<S, P> = S & { readonly '~annotation'?: P };

export function annotate<S extends z.ZodType, const P extends Annotation>(
  schema: S,
  annotation: P,
): Annotated<S, P> {
  annotations.add(schema, annotation);
  return schema;
}

/** The ID of a record of another resource in the same realm. */
export function reference(name: string) {
  return annotate(
    identifier('a record').meta({ format: 'uuid' }),
    // A link stays with its profile (docs/wire.md#updates).
    { references: name, writableBy: 'creator' },
  );
}

type Members = Readonly<Record<string, z.ZodType>>;

/** A password in a request: only its hash is stored. */
interface PasswordInput {
  readonly schema: z.ZodType<string>;
  /** The member that holds its hash. */
  readonly hash: string;
  /** The member that holds whether the password was normalised before it was hashed. */
  readonly isNormalised: string;
}

/** The reverse lookup of a resource in its realm. */
export interface LookupRules {
  readonly filterables: Filterables;
  /** The sets of members that a filter may name, each with one value; each set has an index. */
  readonly by: readonly (readonly string[])[];
  /** A reference that a filter may name as well, to list all records with it; its index is in the order of lists. */
  readonly listedBy?: string;
}

/** One value for each member of a set of `reverseLookup.by`, in the order of the set. */
export interface LookupKey {
  readonly members: readonly string[];
  readonly values: readonly ComparableValue[];
}

/**
 * A resource as data. Validation, TypeScript types, OpenAPI, SQL, routes and links are derived from it. A quirk of the
 * wire format is a value here, never a branch elsewhere. It has no callbacks.
 */
export interface Resource<M extends Members = Members> {
  /** The hyphenated noun in event names and documents. */
  readonly name: string;
  /** Its number in stored log entries, which no other resource ever had: the first is 1. */
  readonly number: number;
  /** The `type` member of its records. */
  readonly type: string;
  /** The path segment of its collection. */
  readonly collection: string;
  readonly table: string;
  /** The column that names a record of this resource in the tables below it. */
  readonly foreignKey?: 'realm_id' | 'user_id';
  /** The parent resource; undefined for realms. */
  readonly parent: Resource | undefined;
  /** Its name in the `include` of a request for its parent record (docs/wire.md#included-records). */
  readonly includedAs?: string;
  /** The prefix of the path in the self link of a single record (docs/wire.md#self-links). */
  readonly selfPrefix: '/v2' | '';
  /** `<scope>:read` permits reading it, `<scope>:write` writing it. */
  readonly scope: string;
  /** Stored log entries name a member by its position: new ones come last, and none is removed. */
  readonly members: M;
  /** Sets of columns that are unique in a realm; a unique index decides. */
  readonly unique: readonly (readonly string[])[];
  /** Inputs of a request that no record holds. */
  readonly inputs?: Readonly<Record<string, PasswordInput>>;
  /** The permitted `id` in the body of a PUT (docs/wire.md#updates). */
  readonly bodyId: 'own' | 'own_or_parent' | 'ignored';
  /** Further links of a record, by name: paths below the base URL with `{store}`, `{realm}` and `{id}`. */
  readonly extraLinks?: Readonly<Record<string, string>>;
  /** Attributes of list filters; lists of resources without them ignore `filter` and `sort` (docs/wire.md#order). */
  readonly filterables?: Filterables;
  readonly reverseLookup?: LookupRules;
  /** The lookup in all realms that a token may read. */
  readonly searchAllRealms?: LookupRules;
  /** A record with this member true cannot be deleted. */
  readonly protectedBy?: string;
  /** The description in the OpenAPI document. */
  readonly summary: string;
  /** What people call a record and several of them. */
  readonly words: readonly [one: string, many: string];
  /** The summary of its creation in the OpenAPI document; default: "Create a …". */
  readonly creation?: string;
}

/** Keeps the literal types of a description: the client library infers its types from them. */
export function resource<const D extends Resource>(description: D): D {
  return Object.freeze(description);
}

/** A record in memory: flat, timestamps in milliseconds since the epoch. */
export type RecordOf<R extends Resource> = {
  readonly id: Uuid;
  readonly created_at: number;
  readonly updated_at: number;
  readonly revision: Revision;
} & z.output<z.ZodObject<R['members']>>;

export type AnyRecord = {
  readonly id: Uuid;
  readonly created_at: number;
  readonly updated_at: number;
  readonly revision: Revision;
  readonly [member: string]: unknown;
};

/** The IDs of a record and its parents, realm first. */
export type Key = readonly [realm: Uuid, ...path: Uuid[]];

/** The resources from the realm down to this one. */
export function ancestry(resource: Resource): readonly Resource[] {
  return resource.parent ? [...ancestry(resource.parent), resource] : [resource];
}

/** The columns of a record's key, in the order of `Key`. */
export function keyColumns(resource: Resource): readonly string[] {
  return ancestry(resource).map((ancestor) =>
    ancestor.parent && ancestor === resource ? 'id' : (ancestor.foreignKey ?? 'id'),
  );
}

/** The parents of records: empty for all records, a realm, or a realm and a user. */
export type KeyPrefix = readonly Uuid[];

/** The key of the parent; undefined for a realm. */
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

/** The members of a resource with their annotations, in the order of the description. Cached: every write needs them. */
export function membersOf(resource: Resource): readonly Member[] {
  return members.getOrInsertComputed(resource, () => {
    const described = Object.entries(resource.members);
    return Object.freeze(
      described.map(([name, schema]) => ({ name, schema, annotation: annotations.get(schema) ?? {} })),
    );
  });
}

export function isVisible({ annotation }: Member): boolean {
  return annotation.secret === undefined && annotation.hidden === undefined;
}

/** The members that the record itself has in responses. */
export function shownMembers(resource: Resource): readonly Member[] {
  return membersOf(resource).filter((member) => isVisible(member) && member.annotation.shownIn === undefined);
}

export function referencedResource(resource: Resource, member: string, all: readonly Resource[]): Resource {
  const name = membersOf(resource).find((each) => each.name === member)?.annotation.references;
  const found = all.find((other) => other.name === name);
  if (!found) throw new Error(`${resource.name}.${member} names no resource`);
  return found;
}

const WRAPPERS = [z.ZodOptional, z.ZodNullable, z.ZodDefault, z.ZodPipe];

/**
 * The type of a present value, in the words of zod. The JSON Schema of the member has it as well, but every start would
 * wait until one is written for each member.
 */
export function valueType({ schema }: Member): string {
  let inner: z.ZodType = schema;
  while (WRAPPERS.some((wrapper) => inner instanceof wrapper)) {
    inner = (inner instanceof z.ZodPipe ? inner.out : (inner as z.ZodOptional).unwrap()) as z.ZodType;
  }
  return inner.type;
}
