import type { z } from 'zod';
import { type Complaint, Fault } from '../domain/fault.ts';
import { parseUuid } from '../domain/id.ts';
import type { Key, Resource } from '../domain/resource.ts';
import { ruleOf } from '../domain/rule.ts';
import { type InputVerb, type Sayable, sayableOf } from '../domain/text/visible_text.ts';

export type { InputVerb } from '../domain/text/visible_text.ts';

/** A JSON object that somebody sent. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** What a caller said about a record, every value checked. What was not said is not here. */
export interface Input {
  readonly members: Readonly<Record<string, unknown>>;
  /** Of the description's `inputs`: values that are made into members and never kept. */
  readonly passwords: Readonly<Record<string, string>>;
}

/** Reads the `data` of a request. Throws Fault `invalid` or `conflict` with every complaint there is. */
export type InputReader = (data: JsonObject) => Input;

/**
 * Makes the reader of a verb. To create, what is missing is a complaint or has its default; an update is partial: what is
 * missing stays as it is (contract 8, row 9). Members that nobody knows are ignored, so are those that are not the
 * caller's to say.
 */
export function inputReaderFor(resource: Resource, verb: InputVerb): InputReader {
  const sayable = sayableOf(resource, verb);
  return (data) => {
    const said = collectFieldErrors();
    if (data.type !== resource.type) said.add('data.type', `must be ${resource.type}`);
    const holders = { data, relationships: relationshipsOf(data.relationships, said) };
    const members: Record<string, unknown> = {};
    const passwords: Record<string, string> = {};
    for (const each of sayable) {
      const value = inputValue(holders, each);
      if (value === undefined && verb === 'update') continue;
      const parsed = read(each, value, said);
      if (parsed !== undefined) (each.isPassword ? passwords : members)[each.name] = parsed as string;
    }
    said.throwIfAny();
    return { members, passwords };
  };
}

type InputObjects = Readonly<Record<Sayable['within'], JsonObject>>;

/** Clients send null for a relationship that names nothing (contract 2.1). */
function inputValue(holders: InputObjects, { name, within }: Sayable): unknown {
  const value = holders[within][name];
  return value === null && within === 'relationships' ? undefined : value;
}

/** The value of a member, with its default; undefined where it has none, or breaks a rule. */
function read({ name, schema, within, isAsked }: Sayable, value: unknown, said: FieldErrors): unknown {
  const field = within === 'data' ? `data.${name}` : `data.${within}.${name}`;
  if (value === undefined && isAsked) said.add(field, 'is missing');
  const parsed = schema.safeParse(value);
  if (!parsed.success) said.addIssues(field, value, parsed.error.issues);
  return parsed.data;
}

/** Clients send null for what holds nothing (contract 2.1). */
function relationshipsOf(value: unknown, said: FieldErrors): JsonObject {
  if (value === undefined || value === null) return NOTHING;
  if (typeof value === 'object' && !Array.isArray(value)) return value as JsonObject;
  said.add('data.relationships', 'must be an object');
  return NOTHING;
}

const NOTHING: JsonObject = Object.freeze({});

interface FieldErrors {
  add(field: string, rule: string): void;
  addIssues(field: string, value: unknown, issues: readonly z.core.$ZodIssue[]): void;
  /** Throws where there is any: what is badly formed is `invalid`, what is only impossible is `conflict`. */
  throwIfAny(): void;
}

function collectFieldErrors(): FieldErrors {
  const invalid: Complaint[] = [];
  const impossible: Complaint[] = [];
  return {
    add: (field, rule) => invalid.push({ field, rule }),
    addIssues(field, value, issues) {
      // A value that is missing breaks one rule, whatever else might be said of it.
      if (value === undefined) {
        if (!invalid.some((complaint) => complaint.field === field))
          invalid.push({ field, rule: 'is missing' });
        return;
      }
      for (const issue of issues) {
        const complaint = { field: [field, ...issue.path].join('.'), rule: ruleOf(issue) };
        (isImpossible(issue) ? impossible : invalid).push(complaint);
      }
    },
    throwIfAny() {
      if (invalid.length > 0) throw new Fault('invalid', [...invalid, ...impossible]);
      if (impossible.length > 0) throw new Fault('conflict', impossible);
    },
  };
}

function isImpossible(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'custom' && issue.params?.isImpossible === true;
}

/**
 * Judges an `id` in the body of an update (contract 8, row 9). Throws Fault `conflict` where it names another record,
 * `invalid` where it is no text.
 */
export function assertBodyId(resource: Resource, key: Key, { id }: JsonObject): void {
  if (id === undefined || resource.bodyId === 'ignored') return;
  if (typeof id !== 'string') throw new Fault('invalid', [{ field: 'data.id', rule: 'must be a string' }]);
  const named = parseUuid(id);
  const allowed = resource.bodyId === 'own' ? key.slice(-1) : key.slice(-2);
  if (named === undefined || !allowed.includes(named)) {
    throw new Fault('conflict', [{ field: 'data.id', rule: 'must be the identifier in the path' }]);
  }
}
