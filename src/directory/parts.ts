import type { Clock } from '../domain/id.ts';
import { isJsonObject, type JsonObject } from '../domain/json_object.ts';
import { LIMITS } from '../domain/limits.ts';
import { type Key, type KeyPrefix, membersOf, type Resource } from '../domain/resource.ts';
import { includableBelow } from '../domain/resources.ts';
import { checkBodyId, type FieldErrors, type Input, type InputReader, type InputVerb } from './input.ts';
import type { CreateRequest, WriteRequest } from './write_request.ts';

/** A record that a request writes: its validated input. */
export interface Part {
  readonly resource: Resource;
  readonly verb: InputVerb;
  readonly key: Key;
  readonly input: Input;
  /** Where the request has its members. */
  readonly at: string;
  /** Its parent is created by the same request. */
  readonly isIncluded: boolean;
}

/** The records that a request writes, those below others last. Adds every error of the request to `errors`. */
export type ReadParts = (request: WriteRequest, errors: FieldErrors) => readonly Part[];

export function openParts(
  readerOf: (resource: Resource, verb: InputVerb) => InputReader,
  { mintId }: Pick<Clock, 'mintId'>,
): ReadParts {
  const keyBelow = (scope: KeyPrefix) => [...scope, mintId()] as unknown as Key;

  /** The records in `included`: each is an object like the `data` of its own create. */
  function readIncluded(request: CreateRequest, parent: Key, errors: FieldErrors): readonly Part[] {
    const { included } = request.body;
    const children = includableBelow(request.resource);
    if (included === undefined || children.length === 0) return [];
    const field = bodyField(request, 'included');
    return entriesOf(included, field, errors).flatMap((entry, index) => {
      const at = `${field}.${index}`;
      const data = objectOf(entry, at, errors);
      if (!data) return [];
      const child = children.find(({ type }) => type === data.type);
      if (!child) {
        errors.add(`${at}.type`, `must be one of ${children.map(({ type }) => type).join(', ')}`);
        return [];
      }
      const input = readerOf(child, 'create')(data, at, errors);
      return [
        { resource: child, verb: 'create' as const, key: keyBelow(parent), input, at, isIncluded: true },
      ];
    });
  }

  return (request, errors) => {
    if (request.verb === 'remove') return [];
    const { resource, verb, body } = request;
    const key = verb === 'create' ? keyBelow(request.scope) : request.key;
    const at = bodyField(request, 'data');
    const parts: Part[] = [];
    const data = objectOf(body.data, at, errors);
    if (data) {
      const input = readerOf(resource, verb)(data, at, errors);
      if (verb === 'update') checkBodyId(resource, key, { data, at }, errors);
      parts.push({ resource, verb, key, input, at, isIncluded: false });
    }
    if (verb === 'create') parts.push(...readIncluded(request, key, errors));
    return parts;
  };
}

/** The place of a member of a body in its request. */
export function bodyField({ item }: WriteRequest, name: string): string {
  return item === undefined ? name : `${item}.body.${name}`;
}

function objectOf(value: unknown, field: string, errors: FieldErrors): JsonObject | undefined {
  if (isJsonObject(value)) return value;
  errors.add(field, value === undefined ? 'is missing' : 'must be a JSON object');
  return undefined;
}

function entriesOf(value: unknown, field: string, errors: FieldErrors): readonly unknown[] {
  const most = LIMITS.recordsPerRequestMax;
  if (Array.isArray(value) && value.length <= most) return value;
  errors.add(field, Array.isArray(value) ? `must have at most ${most} entries` : 'must be an array');
  return [];
}

/** Work of a request that its answer has to wait for. */
interface Cost {
  readonly most: number;
  readonly rule: string;
  /** The fields of a part that cause it. */
  readonly fieldsOf: (part: Part) => readonly string[];
}

const COSTS: readonly Cost[] = [
  {
    most: LIMITS.passwordsPerRequestMax,
    rule: `a request may have at most ${LIMITS.passwordsPerRequestMax} passwords`,
    fieldsOf: ({ input, at }) => Object.keys(input.passwords).map((name) => `${at}.${name}`),
  },
  {
    most: LIMITS.discoveriesPerRealmMax,
    rule: `a request may have at most ${LIMITS.discoveriesPerRealmMax} of these`,
    fieldsOf({ resource, input, at }) {
      const urls = membersOf(resource).flatMap(({ annotation }) => annotation.discoveredFrom?.member ?? []);
      return urls.filter((url) => url in input.members).map((url) => `${at}.${url}`);
    },
  },
];

/** Adds an error for each password and each provider beyond the number that one answer can wait for. */
export function checkCosts(parts: readonly Part[], errors: FieldErrors): void {
  for (const { most, rule, fieldsOf } of COSTS)
    for (const field of parts.flatMap(fieldsOf).slice(most)) errors.add(field, rule);
}
