import { z } from 'zod';
import {
  type OpenSecret,
  ownIdField,
  parentFields,
  type RecordSecretLocation,
  secretLocation,
} from '../directory/format.ts';
import type { ComparedRecord, Load } from '../directory/store.ts';
import { type ChangeOrigin, changeOf } from '../domain/change.ts';
import { Fault } from '../domain/fault.ts';
import { type Clock, parseUuid, type Uuid } from '../domain/id.ts';
import type { JsonObject } from '../domain/json_object.ts';
import {
  type AnyRecord,
  type Key,
  type Member,
  membersOf,
  type ReferenceCondition,
  type Resource,
  referencedResource,
} from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';
import { email } from '../domain/text/folding.ts';

/** What reading lines needs from outside. */
export interface ImportContext {
  readonly clock: Clock;
  /** Whether a line may replace the record it names. */
  readonly isUpsert: boolean;
  /** This installation: the origin of a realm that names none (contract 8, row 31). */
  readonly installation: string;
  seal(place: RecordSecretLocation, plain: string): Uint8Array;
  readonly open: OpenSecret;
}

/** A member that is no e-mail address, and the record that may ask for one. */
export interface EmailCondition {
  readonly name: string;
  readonly condition: ReferenceCondition;
  readonly resource: Resource;
  readonly key: Key;
}

export interface ParsedLine {
  readonly load: Load;
  readonly conditions: readonly EmailCondition[];
}

/** Reads one line. Throws Fault `invalid` with names and rules, never with a value of the line. */
export type LineParser = (bytes: Uint8Array) => ParsedLine;

const INSTANT = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/** All that is known about the lines of one resource before the first one is read. */
interface Shape {
  readonly resource: Resource;
  readonly schema: z.ZodObject;
  readonly members: readonly Member[];
  readonly sealed: readonly Member[];
  /** Members that say something about another one, and are not known once that moved without them. */
  readonly followed: ReadonlyMap<string, string>;
  /** Members that have a value of their own where the line does not state one. */
  readonly filled: readonly Member[];
  readonly conditional: readonly Omit<EmailCondition, 'key'>[];
  /** The members of the line that name the records above, realm first. */
  readonly above: readonly string[];
  /** The member by which a line may name its own record a second time. */
  readonly self: string | undefined;
}

/** A line as it was understood. */
interface Statement {
  readonly shape: Shape;
  readonly key: Key;
  /** The members that the line states, as it states them. */
  readonly stated: JsonObject;
  readonly createdAt: number | undefined;
  readonly updatedAt: number | undefined;
  readonly record: AnyRecord;
  readonly now: number;
}

/** The resources that a condition can ask about. */
export const CONDITION_TARGETS: ReadonlySet<Resource> = new Set(
  RESOURCES.flatMap((resource) =>
    membersOf(resource).flatMap(({ annotation: { emailIf: emailWhere } }) =>
      emailWhere ? [referencedResource(resource, emailWhere.reference, RESOURCES)] : [],
    ),
  ),
);

/** Makes the reader of a whole import; what can be derived from the descriptions is derived here, once. */
export function openLineParser(context: ImportContext): LineParser {
  const shapes = new Map(RESOURCES.map((resource) => [resource.type, shapeOf(resource)]));
  return (bytes) => {
    const line = parseObject(bytes);
    const shape = typeof line.type === 'string' ? shapes.get(line.type) : undefined;
    if (!shape) throw invalidField('type', `must be one of ${[...shapes.keys()].join(', ')}`);
    const statement = parseStatement(shape, line, context);
    return { load: loadOf(statement, context), conditions: conditionsOf(statement) };
  };
}

function invalidField(field: string, rule: string): Fault {
  return new Fault('invalid', [{ field, rule }]);
}

function shapeOf(resource: Resource): Shape {
  const members = membersOf(resource);
  return {
    resource,
    schema: z.object(resource.members),
    members,
    sealed: members.filter(({ annotation }) => annotation.secret === 'sealed'),
    followed: new Map(
      Object.values(resource.inputs ?? {}).map(({ hash, isNormalised }) => [isNormalised, hash]),
    ),
    filled: members.filter(({ annotation }) => annotation.derived ?? annotation.installation),
    conditional: members.flatMap(({ name, annotation: { emailIf } }) =>
      emailIf
        ? [{ name, condition: emailIf, resource: referencedResource(resource, emailIf.reference, RESOURCES) }]
        : [],
    ),
    above: parentFields(resource),
    self: ownIdField(resource),
  };
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseObject(bytes: Uint8Array): JsonObject {
  return objectOf(parsed(decoded(bytes)), '');
}

function decoded(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalidField('', 'is not UTF-8');
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidField('', 'is not JSON');
  }
}

function objectOf(value: unknown, field: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw invalidField(field, 'must be a JSON object');
}

function parseStatement(shape: Shape, line: JsonObject, context: ImportContext): Statement {
  const key = keyOf(shape, line);
  const holders = { meta: nestedObject(line, 'meta'), relationships: nestedObject(line, 'relationships') };
  const stated: Record<string, unknown> = {};
  for (const { name, annotation } of shape.members) {
    const value = (annotation.within ? holders[annotation.within] : line)[name];
    if (value !== undefined) stated[name] = value;
  }
  const members = parseMembers(shape, stated, context);
  for (const { name } of shape.sealed) {
    const plain = members[name];
    if (plain !== undefined)
      members[name] = context.seal(secretLocation(shape.resource, name, key), plain as string);
  }
  const { meta } = holders;
  const createdAt = instantOf(meta, 'created_at');
  // Most records were never changed: their second instant is the first one.
  const isUnchanged = createdAt !== undefined && meta.updated_at === meta.created_at;
  const updatedAt = isUnchanged ? createdAt : instantOf(meta, 'updated_at');
  if (createdAt !== undefined && updatedAt !== undefined && updatedAt < createdAt) {
    throw invalidField('meta.updated_at', 'must not be before meta.created_at');
  }
  const now = context.clock.now();
  const record: AnyRecord = Object.assign(members, {
    id: key.at(-1) as Uuid,
    ...stamps({ createdAt, updatedAt, now }),
    revision: context.clock.mintRevision(),
  });
  return { shape, key, stated, createdAt, updatedAt, record, now };
}

/** Where nobody states them: made before it was updated, updated now. */
function stamps(of: Pick<Statement, 'createdAt' | 'updatedAt' | 'now'>) {
  const updatedAt = of.updatedAt ?? Math.max(of.now, of.createdAt ?? of.now);
  return { created_at: of.createdAt ?? Math.min(of.now, updatedAt), updated_at: updatedAt };
}

const NOTHING: JsonObject = Object.freeze({});

/** An object inside the line. Clients send null for one that holds nothing. */
function nestedObject(line: JsonObject, name: string): JsonObject {
  const value = line[name];
  return value === undefined || value === null ? NOTHING : objectOf(value, name);
}

function keyOf(shape: Shape, line: JsonObject): Key {
  const id = idOf(line, 'id');
  if (shape.self !== undefined && line[shape.self] !== undefined && idOf(line, shape.self) !== id) {
    throw invalidField(shape.self, 'must equal id');
  }
  const key: Uuid[] = [];
  for (const name of shape.above) key.push(idOf(line, name));
  key.push(id);
  return key as unknown as Key;
}

function idOf(line: JsonObject, name: string): Uuid {
  const raw = line[name];
  if (raw === undefined) throw invalidField(name, 'is missing');
  const id = typeof raw === 'string' ? parseUuid(raw) : undefined;
  if (id === undefined) throw invalidField(name, 'must be the identifier of a record');
  return id;
}

/** An instant exactly as it is answered, of a day that exists (contract 8, row 47). */
function instantOf(meta: JsonObject, name: string): number | undefined {
  const raw = meta[name];
  if (raw === undefined) return undefined;
  const at = typeof raw === 'string' && INSTANT.test(raw) ? Date.parse(raw) : Number.NaN;
  if (!Number.isNaN(at) && (hasEveryMonth(raw as string) || new Date(at).toISOString() === raw)) return at;
  throw invalidField(`meta.${name}`, 'must be an instant in UTC of the form YYYY-MM-DDTHH:MM:SS.mmmZ');
}

/** Whether the day of an instant is one that every month has: then it need not be looked up. */
function hasEveryMonth(instant: string): boolean {
  const day = instant.slice(8, 10);
  return day >= '01' && day <= '28';
}

function parseMembers(shape: Shape, stated: JsonObject, context: ImportContext): Record<string, unknown> {
  const given = shape.filled.length === 0 ? stated : fill(shape, stated, context);
  const parsed = shape.schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const complaints = parsed.error.issues.map(({ path, message }) => {
    const [name, ...inner] = path as string[];
    const within = shape.members.find((member) => member.name === name)?.annotation.within;
    return {
      field: [within, name, ...inner].filter((part) => part !== undefined).join('.'),
      rule: inner.length === 0 && given[name ?? ''] === undefined ? 'is missing' : message,
    };
  });
  throw new Fault('invalid', complaints);
}

/** Gives the members that have a value of their own that value, unless the line states one. */
function fill(shape: Shape, stated: JsonObject, { installation }: ImportContext): JsonObject {
  const given: Record<string, unknown> = { ...stated };
  for (const { name, annotation } of shape.filled) {
    if (given[name] !== undefined) continue;
    const source = annotation.derived && given[annotation.derived.from];
    if (annotation.installation) given[name] = { data: { id: installation, type: annotation.installation } };
    else if (
      annotation.derived &&
      typeof source === 'string' &&
      source.endsWith(annotation.derived.without)
    ) {
      given[name] = source.slice(0, -annotation.derived.without.length);
    }
  }
  return given;
}

/** Asks nothing where a member is an e-mail address anyway. */
function conditionsOf({ shape, stated, record, key }: Statement): readonly EmailCondition[] {
  if (shape.conditional.length === 0) return NO_CONDITIONS;
  return shape.conditional
    .filter(({ name }) => !EMAIL.safeParse(stated[name]).success)
    .map((condition) => ({ ...condition, key: [key[0], record[condition.condition.reference] as Uuid] }));
}

const EMAIL = email();
const NO_CONDITIONS: readonly EmailCondition[] = Object.freeze([]);

function loadOf(statement: Statement, context: ImportContext): Load {
  const { shape, key, record, now } = statement;
  return {
    write: { op: 'insert', resource: shape.resource, key, record },
    change: changeOf(shape.resource, 'created', { key, revision: record.revision }, originAt(now)),
    compare: (stored) => judge(statement, stored, context),
  };
}

function originAt(at: number): ChangeOrigin {
  return { actor: 'import', requestId: undefined, address: undefined, at };
}

/** What the line does not state counts as the same, and stays what it is. */
function judge(statement: Statement, stored: AnyRecord, context: ImportContext): ComparedRecord {
  const { shape, key, record, createdAt, updatedAt, now } = statement;
  const moved = [
    ...movedMembers(statement, stored, context),
    ...(createdAt === undefined || createdAt === stored.created_at ? [] : ['created_at']),
    ...(updatedAt === undefined || updatedAt === stored.updated_at ? [] : ['updated_at']),
  ];
  const change = changeOf(
    shape.resource,
    'updated',
    { key, revision: record.revision, members: moved },
    originAt(now),
  );
  if (moved.length === 0) return { comparison: 'same', change };
  if (!context.isUpsert || fixedOf(shape.resource, moved).length > 0) return { comparison: 'refuse', change };
  const replacement: AnyRecord = {
    ...stored,
    ...Object.fromEntries(moved.map((name) => [name, record[name]])),
    ...stamps({ createdAt: createdAt ?? earlier(stored.created_at, updatedAt), updatedAt, now }),
    revision: record.revision,
  };
  return { comparison: 'replace', change, record: replacement };
}

/** A record was not made after the last time it was updated. */
function earlier(createdAt: number, updatedAt: number | undefined): number {
  return Math.min(createdAt, updatedAt ?? createdAt);
}

function movedMembers(
  { shape, stated, record, key }: Statement,
  stored: AnyRecord,
  context: ImportContext,
): readonly string[] {
  const moved: string[] = [];
  for (const { name, annotation } of shape.members) {
    const from = annotation.derived?.from ?? shape.followed.get(name);
    const isMoving = stated[name] !== undefined || moved.includes(from ?? '');
    if (!isMoving) continue;
    const isSame =
      annotation.secret === 'sealed'
        ? opened(stored[name], secretLocation(shape.resource, name, key), context) === stated[name]
        : isEqual(stored[name], record[name]);
    if (!isSame) moved.push(name);
  }
  return moved;
}

function isEqual(left: unknown, right: unknown): boolean {
  return left === right || (typeof left === 'object' && Bun.deepEquals(left, right, true));
}

/** Undefined where nothing is stored or it does not open: then the line's secret takes its place. */
function opened(sealed: unknown, place: RecordSecretLocation, { open }: ImportContext): string | undefined {
  if (!(sealed instanceof Uint8Array)) return undefined;
  try {
    return open(place, sealed);
  } catch {
    return undefined;
  }
}

/** Those of the members that never change once a record is there: it stays with its profile. */
export function fixedOf(resource: Resource, names: readonly string[]): readonly string[] {
  return membersOf(resource)
    .filter(({ name, annotation }) => annotation.references !== undefined && names.includes(name))
    .map(({ name }) => name);
}
