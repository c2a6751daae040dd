import { z } from 'zod';
import { signerKeyIdIn } from '../../access/keys/signer_keys.ts';
import type { SecretLocation } from '../../access/store/sealed.ts';
import { attempt } from '../../model/attempt.ts';
import { Fault } from '../../model/fault.ts';
import { type Clock, parseUuid, type Uuid } from '../../model/id.ts';
import type { Caller } from '../../model/log/audit_entry.ts';
import { type ChangeOrigin, changeOf } from '../../model/log/change.ts';
import type { Realms } from '../../model/principal.ts';
import { type AnyRecord, type Key, membersOf, type Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import { violatedRule } from '../../model/rule.ts';
import type { ComparedRecord, Guard, Load } from '../../model/store.ts';
import { email } from '../../model/text/folding.ts';
import { parseInstant } from '../../model/text/instant.ts';
import { isJsonObject, type JsonObject } from '../../model/text/json_object.ts';
import { type OpenSecret, ownIdField, parentFields, secretLocation } from '../../records/format.ts';
import { issuerProblem } from '../../records/write_rules.ts';
import { withUserState } from './user_states.ts';

export interface ImportContext {
  readonly clock: Clock;
  /** Whether a line may replace a stored record. */
  readonly isUpsert: boolean;
  /** Whether a line with an unknown member is rejected. */
  readonly isStrict: boolean;
  /** The ID of this installation: the origin of a realm that names none (docs/wire.md#realms). */
  readonly installation: string;
  seal(location: SecretLocation, plain: string): Uint8Array;
  readonly open: OpenSecret;
  /** The signer keys that hashes of Firebase may name. */
  readonly signerKeyIds: ReadonlySet<string>;
  /** Who sent the lines over HTTP, and its realms; undefined for the command, which imports all members into all realms. */
  readonly sender?: { readonly caller: Caller; readonly realms: Realms } | undefined;
}

export interface ParsedLine {
  readonly load: Load;
  /** The names of the members that were ignored. */
  readonly unknown: readonly string[];
  /** The names of the members that were read as `enabled`. */
  readonly mapped: readonly string[];
}

/** Parses one line. Throws Fault `invalid` with names and rules, never with a value of the line. */
export type LineParser = (bytes: Uint8Array) => ParsedLine;

type LineFormat = ReturnType<typeof formatOf>;

/** The objects in a line. */
const HOLDERS = ['meta', 'relationships'] as const;

type LineRecord = ReturnType<typeof parseRecord>;

/** Creates the parser of an import. It derives the line formats from the descriptions once. */
export function openLineParser(context: ImportContext): LineParser {
  const formats = new Map(RESOURCES.map((resource) => [resource.type, formatOf(resource, context)]));
  return (bytes) => {
    const text = parsed(() => UTF8.decode(bytes), 'is not UTF-8');
    const value: unknown = parsed(() => JSON.parse(text), 'is not JSON');
    const source = objectOf(value, '');
    const format = typeof source.type === 'string' ? formats.get(source.type) : undefined;
    if (!format) throw invalidField('type', `must be one of ${[...formats.keys()].join(', ')}`);
    const { line, mapped } = withUserState(format.resource, source, context.clock.now());
    const unknown = unknownNames(format, line).filter((name) => !mapped.includes(name));
    if (context.isStrict) assertNone(unknown, `is no member of ${format.resource.type}`);
    const refused = format.refused.filter((name) => line[name] !== undefined);
    assertNone(refused, 'is imported by the command "authrealm import" alone');
    const lineRecord = parseRecord(format, line, context);
    const { key, record, now } = lineRecord;
    const { resource } = format;
    assertPermitted(resource, key, context.sender?.realms);
    const origin = originAt(now, context.sender?.caller);
    const change = changeOf(resource, 'created', { key, revision: record.revision }, origin);
    const load: Load = {
      write: { op: 'insert', resource, key, record, change, guards: guardsOf(lineRecord) },
      compare: (stored) => compareWith(lineRecord, stored, context),
    };
    return { load, unknown, mapped };
  };
}

function assertNone(fields: readonly string[], rule: string): void {
  const fieldErrors = fields.map((field) => ({ field, rule }));
  if (fieldErrors.length > 0) throw new Fault('invalid', fieldErrors);
}

/** Throws Fault `invalid`: for a line in another realm as for one whose parent does not exist. */
function assertPermitted({ parent }: Resource, [realm]: Key, realms: Realms = '*'): void {
  if (realms === '*' || (parent && realms.has(realm))) return;
  throw invalidField('', parent ? `its ${parent.name} does not exist` : 'needs access to all realms');
}

function unknownNames({ known }: LineFormat, line: JsonObject): readonly string[] {
  const inner = HOLDERS.flatMap((holder) =>
    Object.keys(nestedObject(line, holder)).map((name) => `${holder}.${name}`),
  );
  return [...Object.keys(line), ...inner].filter((name) => !known.has(name));
}

function invalidField(field: string, rule: string): Fault {
  return new Fault('invalid', [{ field, rule }]);
}

/** The format of the lines of one resource. */
function formatOf(resource: Resource, { installation: id, sender }: ImportContext) {
  const members = membersOf(resource);
  return {
    resource,
    schema: z.object(resource.members),
    members,
    sealed: members.filter(({ annotation }) => annotation.secret === 'sealed'),
    /** Members that only the command imports. */
    refused: members
      .filter(({ annotation }) => sender && (annotation.secret ?? annotation.commandOnly))
      .map(({ name }) => name),
    /** Members that describe another one, such as `password_normalised`, and become unknown if that changes without them. */
    dependents: new Map(
      Object.values(resource.inputs ?? {}).map(({ hash, isNormalised }) => [isNormalised, hash]),
    ),
    /** The members whose default is this installation. */
    defaults: Object.fromEntries(
      members
        .filter(({ annotation }) => annotation.installation)
        .map(({ name, annotation }) => [name, { data: { id, type: annotation.installation } }]),
    ),
    conditional: members.filter(({ annotation }) => annotation.emailIf),
    /** The members of the line that name its parents, realm first. */
    parents: parentFields(resource),
    /** The member in which a line may repeat its own ID. */
    ownId: ownIdField(resource),
    /** All members that a line can have; those of an object in it as `meta.created_at`. */
    known: new Set([
      ...['type', 'id', ownIdField(resource) ?? 'id', ...parentFields(resource), ...HOLDERS],
      ...['meta.created_at', 'meta.updated_at'],
      ...members.map(({ name, annotation: { within } }) => (within ? `${within}.${name}` : name)),
    ]),
  };
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parsed<T>(parse: () => T, rule: string): T {
  try {
    return parse();
  } catch {
    throw invalidField('', rule);
  }
}

function objectOf(value: unknown, field: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw invalidField(field, 'must be a JSON object');
}

function parseRecord(format: LineFormat, line: JsonObject, context: ImportContext) {
  const key = keyOf(format, line);
  const holders = { meta: nestedObject(line, 'meta'), relationships: nestedObject(line, 'relationships') };
  /** The members in the line, unparsed. */
  const given: Record<string, unknown> = {};
  for (const { name, annotation } of format.members) {
    const value = (annotation.within ? holders[annotation.within] : line)[name];
    if (value !== undefined) given[name] = value;
  }
  const members = parseMembers(format, given);
  for (const name of format.dependents.values()) assertKnownSigner(name, members[name], context);
  for (const { name } of format.sealed) {
    const plain = members[name];
    if (plain !== undefined)
      members[name] = context.seal(secretLocation(format.resource, name, key), plain as string);
  }
  const { meta } = holders;
  const createdAt = instantOf(meta, 'created_at');
  // Most records were never changed: both timestamps are equal.
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
  return { format, key, given, createdAt, updatedAt, record, now };
}

function assertKnownSigner(name: string, hash: unknown, { signerKeyIds }: ImportContext): void {
  const id = typeof hash === 'string' ? signerKeyIdIn(hash) : undefined;
  if (id !== undefined && !signerKeyIds.has(id))
    throw invalidField(name, 'needs the signer key of its Firebase project: pass --firebase-config');
}

/** Defaults: created at or before `updated_at`, updated now. */
function stamps(of: { createdAt: number | undefined; updatedAt: number | undefined; now: number }) {
  const updatedAt = of.updatedAt ?? Math.max(of.now, of.createdAt ?? of.now);
  return { created_at: of.createdAt ?? Math.min(of.now, updatedAt), updated_at: updatedAt };
}

const NOTHING: JsonObject = Object.freeze({});

/** An object inside the line. Null means an empty one (docs/wire.md#request-bodies). */
function nestedObject(line: JsonObject, name: string): JsonObject {
  const value = line[name];
  return value === undefined || value === null ? NOTHING : objectOf(value, name);
}

function keyOf(format: LineFormat, line: JsonObject): Key {
  const id = idOf(line, 'id');
  if (format.ownId !== undefined && line[format.ownId] !== undefined && idOf(line, format.ownId) !== id) {
    throw invalidField(format.ownId, 'must equal id');
  }
  return [...format.parents.map((name) => idOf(line, name)), id] as unknown as Key;
}

function idOf(line: JsonObject, name: string): Uuid {
  const raw = line[name];
  if (raw === undefined) throw invalidField(name, 'is missing');
  const id = typeof raw === 'string' ? parseUuid(raw) : undefined;
  if (id === undefined) throw invalidField(name, 'must be the identifier of a record');
  return id;
}

/** Answers have years of four digits (docs/wire.md#imported-instants). */
function instantOf(meta: JsonObject, name: string): number | undefined {
  const raw = meta[name];
  if (raw === undefined) return undefined;
  const at = typeof raw === 'string' ? parseInstant(raw) : undefined;
  if (at !== undefined && /^\d/.test(new Date(at).toISOString())) return at;
  throw invalidField(`meta.${name}`, 'must be an instant of RFC 3339, such as 2026-01-31T09:00:00.000Z');
}

function parseMembers(format: LineFormat, given: JsonObject): Record<string, unknown> {
  const completed: JsonObject = { ...format.defaults, ...given };
  const parsed = format.schema.safeParse(completed);
  if (parsed.success) {
    for (const member of format.members) {
      const problem = issuerProblem(parsed.data, member);
      if (problem !== undefined) throw invalidField(`meta.${member.name}`, problem);
    }
    return parsed.data;
  }
  const fieldErrors = parsed.error.issues.map((issue) => {
    const [name, ...inner] = issue.path as string[];
    const { within, discoveredFrom } = format.members.find((each) => each.name === name)?.annotation ?? {};
    const missing = discoveredFrom
      ? 'is missing: state it as the tokens of the provider have it'
      : 'is missing';
    return {
      field: [within, name, ...inner].filter((part) => part !== undefined).join('.'),
      rule: inner.length === 0 && completed[name ?? ''] === undefined ? missing : violatedRule(issue),
    };
  });
  throw new Fault('invalid', fieldErrors);
}

function guardsOf({ format, given }: LineRecord): readonly Guard[] {
  return format.conditional.flatMap(({ name: member, annotation: { emailIf: condition } }) =>
    condition && !EMAIL.safeParse(given[member]).success ? [{ kind: 'unless', member, condition }] : [],
  );
}

const EMAIL = email();

const IMPORT_COMMAND: Caller = { actor: 'import', requestId: undefined, address: undefined };

/** The origin of the changes of an import. */
export const originAt = (at: number, caller = IMPORT_COMMAND): ChangeOrigin => ({ ...caller, at });

/** Compares a line with the stored record. Members that the line omits count as equal and stay as they are. */
function compareWith(lineRecord: LineRecord, stored: AnyRecord, context: ImportContext): ComparedRecord {
  const { format, key, record, createdAt, updatedAt, now } = lineRecord;
  const changed = [
    ...changedMembers(lineRecord, stored, context),
    ...(createdAt === undefined || createdAt === stored.created_at ? [] : ['created_at']),
    ...(updatedAt === undefined || updatedAt === stored.updated_at ? [] : ['updated_at']),
  ];
  const change = changeOf(
    format.resource,
    'updated',
    { key, revision: record.revision, members: changed },
    originAt(now, context.sender?.caller),
  );
  if (changed.length === 0) return { comparison: 'same', change };
  if (!context.isUpsert || violatedRules(format.resource, record, changed).length > 0)
    return { comparison: 'refuse', change };
  // `created_at` is never after `updated_at`.
  const earliest = Math.min(stored.created_at, updatedAt ?? stored.created_at);
  const replacement: AnyRecord = {
    ...stored,
    ...Object.fromEntries(changed.map((name) => [name, record[name]])),
    ...stamps({ createdAt: createdAt ?? earliest, updatedAt, now }),
    revision: record.revision,
  };
  return { comparison: 'replace', change, record: replacement };
}

function changedMembers(
  { format, given, record, key }: LineRecord,
  stored: AnyRecord,
  context: ImportContext,
): readonly string[] {
  const changed: string[] = [];
  for (const { name, annotation } of format.members) {
    const from = format.dependents.get(name);
    // Every line states the member that resets another one, so it states the default of the other.
    const isCompared =
      given[name] !== undefined || changed.includes(from ?? '') || annotation.resetBy !== undefined;
    if (!isCompared) continue;
    const isSame =
      annotation.secret === 'sealed'
        ? opened(stored[name], secretLocation(format.resource, name, key), context) === given[name]
        : stored[name] === record[name] || Bun.deepEquals(stored[name], record[name], true);
    if (!isSame) changed.push(name);
  }
  return changed;
}

/** Undefined if no secret is stored or it does not decrypt: the line's secret then replaces it. */
function opened(sealed: unknown, location: SecretLocation, { open }: ImportContext): string | undefined {
  return sealed instanceof Uint8Array ? attempt(() => open(location, sealed)) : undefined;
}

/** The rules that a line with these changes violates: a link stays with its profile, and a client secret with its provider. */
export function violatedRules(
  resource: Resource,
  record: AnyRecord,
  changed: readonly string[],
): readonly string[] {
  return membersOf(resource).flatMap(({ name, annotation: { references, discoveredFrom: from } }) => {
    if (references !== undefined && changed.includes(name)) return [`${name} cannot change`];
    const lacksSecret = from && changed.includes(from.member) && record[from.secret] === undefined;
    return lacksSecret ? [`${from.secret} must be stated as well`] : [];
  });
}
