import { z } from 'zod';
import type { Revision, Uuid } from './id.ts';

/** What a member of a record is beyond its shape: where it stands, and how it is kept. All of it optional. */
export interface Placement {
  /** The object inside `data` that holds the member; `data` itself unless said. */
  readonly within?: 'meta' | 'relationships';
  /** The resource of the same realm whose identifier this is. */
  readonly references?: string;
  /** A second column `<member>_key` holds the folded key of contract 8, row 16. */
  readonly folded?: true;
  /** Answered never. `sealed`: kept as a ciphertext of the keyring. `hashed`: kept as the hash it arrives as. */
  readonly secret?: 'sealed' | 'hashed';
  /** What it is where nobody says: the value of this member without this ending (contract 8, row 30). */
  readonly derived?: { readonly from: string; readonly without: string };
  /** What it is where nobody says: this installation, as an origin of this type (contract 8, row 31). */
  readonly installation?: string;
  /** It must be an e-mail address where another record says so (contract 8, row 14). */
  readonly emailWhere?: Saying;
}

/** What the record that is named by the member `reference` says when its own `member` is `is`. */
export interface Saying {
  readonly reference: string;
  readonly member: string;
  readonly is: string;
}

/** Placements by schema: a zod schema says what a member looks like, this registry says the rest. */
export const placements = z.registry<Placement>();

export function place<S extends z.ZodType>(schema: S, placement: Placement): S {
  placements.add(schema, placement);
  return schema;
}

/** The identifier of a record of another resource in the same realm. */
export function reference(name: string) {
  return place(
    z
      .string()
      .regex(/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be the identifier of a record')
      .toLowerCase()
      .meta({ format: 'uuid' }),
    { references: name },
  );
}

export type Members = Readonly<Record<string, z.ZodType>>;

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
  /** The public sentence of the OpenAPI document. */
  readonly summary: string;
}

export function resource<const M extends Members>(description: Resource<M>): Resource<M> {
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
export function lineage(resource: Resource): readonly Resource[] {
  return resource.parent ? [...lineage(resource.parent), resource] : [resource];
}

/** The columns that hold a record's address, in the order of its `Key`. */
export function keyColumns(resource: Resource): readonly string[] {
  return lineage(resource).map((ancestor) =>
    ancestor.parent && ancestor === resource ? 'id' : (ancestor.foreignKey ?? 'id'),
  );
}

/** The address of the record above, or undefined for a realm. */
export function parentKey(key: Key): Key | undefined {
  const [realm, ...path] = key;
  return path.length === 0 ? undefined : [realm, ...path.slice(0, -1)];
}

export interface Member {
  readonly name: string;
  readonly schema: z.ZodType;
  readonly placement: Placement;
}

/** The members of a resource with their placements, in the order of the description. */
export function membersOf(resource: Resource): readonly Member[] {
  return Object.entries(resource.members).map(([name, schema]) => ({
    name,
    schema,
    placement: placements.get(schema) ?? {},
  }));
}
