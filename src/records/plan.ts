import { z } from 'zod';
import type { Clock, Revision, Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import type { Caller } from '../model/log/audit_entry.ts';
import { type ChangeOrigin, changeOf } from '../model/log/change.ts';
import { type AnyRecord, type Key, type KeyPrefix, parentKey, type Resource } from '../model/resource.ts';
import { includableBelow } from '../model/resources.ts';
import type { Guard, Insert, PatchWrite, RemovalWrite, Write } from '../model/store.ts';
import { email } from '../model/text/folding.ts';
import { isJsonObject, type JsonObject } from '../model/text/json_object.ts';
import type { InputVerb } from '../model/writable_members.ts';
import { checkBodyId, collectFieldErrors, type FieldErrors } from './input.ts';
import type { CreateRequest, UpdateRequest, WriteContext, WriteRequest } from './write_request.ts';
import {
  type DirectoryDeps,
  type DirectorySettings,
  type RequestedRecord,
  rulesFor,
  type WriteRules,
} from './write_rules.ts';

/** A write, and where its request has it. The store reads the write alone. */
export type PlannedWrite = (Write | RemovalWrite) & {
  readonly item: WriteRequest['item'];
  /** Where the request has the members of the record. */
  readonly at: string;
};

/** The writes of requests that are committed together. */
interface WritePlan {
  readonly writes: PlannedWrite[];
  /** The records that requests create, in their order; without those in `included`. */
  readonly created: Insert[];
  readonly included: Insert[];
}

/**
 * Plans the writes of requests that are committed together, and stores nothing. Rejects with all errors of all requests:
 * Fault `invalid` or `conflict`, or with `overloaded`.
 */
export function openPlanning(deps: DirectoryDeps, settings: DirectorySettings, clock: Clock) {
  const known = { create: new Map<Resource, WriteRules>(), update: new Map<Resource, WriteRules>() };

  /** Made for the first request: a start would wait. */
  const rulesOf = (resource: Resource, verb: InputVerb): WriteRules =>
    known[verb].getOrInsertComputed(resource, () => rulesFor(resource, verb, deps, settings));

  const keyBelow = (scope: KeyPrefix) => [...scope, clock.mintId()] as unknown as Key;

  /** Adds the records of a request, those in `included` last, and its errors. */
  function readRecords(
    request: CreateRequest | UpdateRequest,
    records: RequestedRecord[],
    errors: FieldErrors,
  ): void {
    const { resource, verb, body } = request;
    const key = verb === 'create' ? keyBelow(request.scope) : request.key;
    const at = bodyField(request, 'data');
    const data = objectOf(body.data, at, errors);
    if (data) {
      readRecord({ resource, request, key, at }, data, records, errors);
      if (verb === 'update') checkBodyId(resource, key, { data, at }, errors);
    }
    if (verb === 'create' && body.included !== undefined) readIncluded(request, key, records, errors);
  }

  function readRecord(
    { resource, ...place }: Pick<RequestedRecord, 'request' | 'key' | 'at'> & { readonly resource: Resource },
    data: JsonObject,
    records: RequestedRecord[],
    errors: FieldErrors,
  ): void {
    const rules = rulesOf(resource, place.request.verb);
    const input = rules.read(data, place.at, errors);
    const { request } = place;
    const fixed = request.verb === 'create' && request.resource === resource ? request.fixed : undefined;
    records.push({ ...place, rules, input, members: { ...input.members, ...fixed } });
  }

  /** Adds the records in `included`: each is an object like the `data` of its own create. */
  function readIncluded(
    request: CreateRequest,
    parent: Key,
    records: RequestedRecord[],
    errors: FieldErrors,
  ): void {
    const children = includableBelow(request.resource);
    if (children.length === 0) return;
    const field = bodyField(request, 'included');
    for (const [index, entry] of entriesOf(request.body.included, field, errors).entries()) {
      const at = `${field}.${index}`;
      const data = objectOf(entry, at, errors);
      const resource = data && children.find(({ type }) => type === data.type);
      if (resource) readRecord({ resource, request, key: keyBelow(parent), at }, data, records, errors);
      else if (data)
        errors.add(`${at}.type`, `must be one of ${children.map(({ type }) => type).join(', ')}`);
    }
  }

  return async (requests: readonly WriteRequest[], by: WriteContext): Promise<WritePlan> => {
    const errors = collectFieldErrors();
    const records: RequestedRecord[] = [];
    for (const request of requests) if (request.verb !== 'remove') readRecords(request, records, errors);
    checkCosts(records, errors);
    errors.throwIfAny();
    const added: Promise<void>[] = [];
    for (const record of records) if (record.rules.steps.length > 0) added.push(addMembers(record, by));
    await Promise.all(added);
    return draftWrites(requests, records, stampOf(by, clock));
  };
}

/** The place of a member of a body in its request. */
function bodyField({ item }: WriteRequest, name: string): string {
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

/** Work that an answer has to wait for: the most members of all requests that cause it. */
const COSTS = [
  {
    members: 'passwords',
    most: LIMITS.passwordsPerRequestMax,
    rule: `a request may have at most ${LIMITS.passwordsPerRequestMax} passwords`,
  },
  {
    members: 'discoveryUrls',
    most: LIMITS.discoveriesPerRealmMax,
    rule: `a request may have at most ${LIMITS.discoveriesPerRealmMax} of these`,
  },
] as const;

/** Adds an error for each password and each provider beyond the number that one answer can wait for. */
function checkCosts(records: readonly RequestedRecord[], errors: FieldErrors): void {
  for (const { members, most, rule } of COSTS) {
    const fields: string[] = [];
    for (const { rules, input, at } of records)
      for (const name of rules[members])
        if (name in input.members || name in input.passwords) fields.push(`${at}.${name}`);
    for (const field of fields.slice(most)) errors.add(field, rule);
  }
}

async function addMembers(record: RequestedRecord, by: WriteContext): Promise<void> {
  for (const step of record.rules.steps) await step(record, by);
}

/** The writes are in the order of the requests. */
function draftWrites(
  requests: readonly WriteRequest[],
  records: readonly RequestedRecord[],
  stamp: Stamp,
): WritePlan {
  const plan: WritePlan = { writes: [], created: [], included: [] };
  for (const request of requests) {
    if (request.verb === 'remove') {
      const { verb: op, ...removal } = request;
      plan.writes.push({ ...removal, ...stamp, op, item: request.item, at: bodyField(request, 'data') });
    }
    for (const record of records) if (record.request === request) draftRecordWrites(plan, record, stamp);
  }
  return plan;
}

/** The write of a record and, below a user that exists already, one that touches the user. */
function draftRecordWrites(
  { writes, created, included }: WritePlan,
  requested: RequestedRecord,
  stamp: Stamp,
): void {
  const { rules, request, key, members, at } = requested;
  const { resource, touched } = rules;
  const { item } = request;
  const isIncluded = resource !== request.resource;
  const guards = guardsOf(requested);
  if (request.verb === 'create') {
    const insert = { ...draftRecord(resource, key, members, stamp), guards, item, at };
    writes.push(insert);
    (isIncluded ? included : created).push(insert);
  } else {
    const { expectedRevision, endsSignIns } = request;
    const patch = draftPatch(resource, key, members, stamp);
    writes.push({ ...patch, guards, expectedRevision, endsSignIns, item, at });
  }
  const above = isIncluded ? undefined : parentKey(key);
  if (!touched || !above) return;
  const expectedRevision = request.verb === 'create' ? request.expectedParentRevision : undefined;
  const touch = expectedRevision === undefined ? { isTouch: true } : { expectedRevision };
  writes.push({ ...draftPatch(touched, above, {}, stamp), ...touch, item, at });
}

const EMAIL = email();

/** The guards of the members that a record is written with. */
function guardsOf({ rules: { guarded }, members, input }: RequestedRecord): readonly Guard[] | undefined {
  if (guarded.length === 0) return undefined;
  const guards: Guard[] = [];
  const written = guarded.filter(({ name }) => members[name] !== undefined);
  for (const { name: member, emailIf, sameAs, isFixedWhileReferenced, from, secret } of written) {
    if (emailIf && !EMAIL.safeParse(members[member]).success)
      guards.push({ kind: 'unless', member, condition: emailIf });
    if (sameAs) guards.push({ kind: 'same', member, reference: sameAs.reference, of: sameAs.member });
    if (isFixedWhileReferenced) {
      guards.push({ kind: 'unreferenced', member, input: member in input.members ? member : from });
      if (members[secret] === undefined) guards.push({ kind: 'unchanged', member: from, input: secret });
    }
  }
  return guards;
}

/** The origin and revisions of the rows of one write. */
export interface Stamp {
  readonly origin: ChangeOrigin;
  readonly mintRevision: () => Revision;
}

/** Reads the clock once for each write. Commands have neither a request nor an address. */
export function stampOf(
  { actor, requestId, address }: Pick<Caller, 'actor'> & Partial<Caller>,
  { now, mintRevision }: Pick<Clock, 'now' | 'mintRevision'>,
): Stamp {
  return { origin: { actor, requestId, address, at: now() }, mintRevision };
}

export function draftRecord(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  { origin, mintRevision }: Stamp,
): Insert {
  const record: AnyRecord = {
    ...members,
    id: key.at(-1) as Uuid,
    created_at: origin.at,
    updated_at: origin.at,
    revision: mintRevision(),
  };
  const change = changeOf(resource, 'created', { key, revision: record.revision, members: [] }, origin);
  return { op: 'insert', resource, key, record, change };
}

/** The write of some members of a record; without any, only `updated_at` and the revision change. */
export function draftPatch(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  { origin, mintRevision }: Stamp,
): PatchWrite {
  const patch = { members, revision: mintRevision(), at: origin.at };
  const written = { key, revision: patch.revision, members: Object.keys(members) };
  return { op: 'patch', resource, key, patch, change: changeOf(resource, 'updated', written, origin) };
}

/**
 * The write of a new record with these members and the defaults of the description. Members that break the description
 * are a bug.
 */
export function draftDescribed(
  resource: Resource,
  key: Key,
  members: Readonly<Record<string, unknown>>,
  by: { readonly clock: Clock; readonly actor: string },
): Insert {
  const described = z.object(resource.members).parse(members);
  return draftRecord(resource, key, described, stampOf(by, by.clock));
}
