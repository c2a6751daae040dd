import type { z } from 'zod';
import { Fault, type FieldError } from '../model/fault.ts';
import { parseUuid } from '../model/id.ts';
import type { Key, Resource } from '../model/resource.ts';
import { violatedRule } from '../model/rule.ts';
import type { JsonObject } from '../model/text/json_object.ts';
import { type InputVerb, type WritableMember, writableMembers } from '../model/writable_members.ts';

/** The validated members of a request. Members that the request omits are missing. */
export interface Input {
  readonly members: Readonly<Record<string, unknown>>;
  /** The passwords of the description's `inputs`, which are hashed and never stored. */
  readonly passwords: Readonly<Record<string, string>>;
}

/**
 * Creates the input reader of a verb. In a create, a missing member has its default or is an error; in an update it
 * stays as it is (docs/wire.md#updates). Unknown and read-only members are ignored.
 */
export function inputReaderFor(resource: Resource, verb: InputVerb) {
  const writable = writableMembers(resource, verb);
  /**
   * Parses the members of a record. `at` is their place in the body of the request, `data` for example; errors are added
   * to `errors`.
   */
  return (data: JsonObject, at: string, errors: FieldErrors): Input => {
    if (data.type !== resource.type) errors.add(`${at}.type`, `must be ${resource.type}`);
    const holders = { data, relationships: relationshipsOf(data.relationships, at, errors) };
    const members: Record<string, unknown> = {};
    const passwords: Record<string, string> = {};
    for (const each of writable) {
      const value = inputValue(holders, each);
      if (value === undefined && verb === 'update') continue;
      const parsed = read(each, value, at, errors);
      if (parsed !== undefined) (each.isPassword ? passwords : members)[each.name] = parsed as string;
    }
    return { members, passwords };
  };
}

type InputObjects = Readonly<Record<WritableMember['within'], JsonObject>>;

/** Clients send null for an empty relationship (docs/wire.md#request-bodies). */
function inputValue(holders: InputObjects, { name, within }: WritableMember): unknown {
  const value = holders[within][name];
  return value === null && within === 'relationships' ? undefined : value;
}

/** The value of a member, or its default; undefined if it has none or is invalid. */
function read(member: WritableMember, value: unknown, at: string, errors: FieldErrors): unknown {
  const { schema, isRequired } = member;
  if (value === undefined && isRequired) errors.add(memberField(member, at), 'is missing');
  const parsed = schema.safeParse(value);
  if (!parsed.success) errors.addIssues(memberField(member, at), value, parsed.error.issues);
  return parsed.data;
}

/** The place of a member in the body of its request. */
function memberField({ name, within }: WritableMember, at: string): string {
  return within === 'data' ? `${at}.${name}` : `${at}.${within}.${name}`;
}

/** Clients send null for an empty object (docs/wire.md#request-bodies). */
function relationshipsOf(value: unknown, at: string, errors: FieldErrors): JsonObject {
  if (value === undefined || value === null) return NOTHING;
  if (typeof value === 'object' && !Array.isArray(value)) return value as JsonObject;
  errors.add(`${at}.relationships`, 'must be an object');
  return NOTHING;
}

const NOTHING: JsonObject = Object.freeze({});

export type FieldErrors = ReturnType<typeof collectFieldErrors>;

/** The field errors of all parts of a request. */
export function collectFieldErrors() {
  const invalid: FieldError[] = [];
  const impossible: FieldError[] = [];
  return {
    add(field: string, rule: string): void {
      invalid.push({ field, rule });
    },
    /** Adds an error about a value that is well-formed and impossible. */
    addImpossible(field: string, rule: string): void {
      impossible.push({ field, rule });
    },
    addIssues(field: string, value: unknown, issues: readonly z.core.$ZodIssue[]): void {
      // A missing value is reported once, as missing.
      if (value === undefined) {
        if (!invalid.some((fieldError) => fieldError.field === field))
          invalid.push({ field, rule: 'is missing' });
        return;
      }
      for (const issue of issues) {
        const fieldError = { field: [field, ...issue.path].join('.'), rule: violatedRule(issue) };
        const isImpossible = issue.code === 'custom' && issue.params?.isImpossible === true;
        (isImpossible ? impossible : invalid).push(fieldError);
      }
    },
    /** Throws if there are any: `invalid` for malformed values, `conflict` if all values are only impossible. */
    throwIfAny(): void {
      if (invalid.length > 0) throw new Fault('invalid', [...invalid, ...impossible]);
      if (impossible.length > 0) throw new Fault('conflict', impossible);
    },
  };
}

/** Checks an `id` in the body of an update (docs/wire.md#updates). */
export function checkBodyId(
  { bodyId }: Resource,
  key: Key,
  { data: { id }, at }: { readonly data: JsonObject; readonly at: string },
  errors: FieldErrors,
): void {
  if (id === undefined || bodyId === 'ignored') return;
  if (typeof id !== 'string') {
    errors.add(`${at}.id`, 'must be a string');
    return;
  }
  const named = parseUuid(id);
  const allowed = bodyId === 'own' ? key.slice(-1) : key.slice(-2);
  if (named === undefined || !allowed.includes(named)) {
    errors.addImpossible(`${at}.id`, 'must be the identifier in the path');
  }
}
