import { FAULTS, Fault, type FieldError } from '../domain/fault.ts';
import type { Clock, Revision } from '../domain/id.ts';
import type { JsonObject } from '../domain/json_object.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AnyRecord, type Key, type KeyPrefix, parentKey, type Resource } from '../domain/resource.ts';
import type { TraceContext } from '../domain/trace_context.ts';
import { draftPatch, draftRecord, type Stamp, stampOf } from './draft.ts';
import {
  type DirectoryDeps,
  type DirectorySettings,
  type Finish,
  finisherFor,
  type GuardsOf,
  guardsFor,
} from './finishing.ts';
import { assertBodyId, type InputReader, type InputVerb, inputReaderFor } from './input.ts';
import type { Guard, IdempotencyRecord, KeyedRecord, Store, Write, WriteResult } from './store.ts';

/** The caller of a write. */
export interface WriteContext {
  readonly actor: string;
  readonly requestId: string;
  /** The IP address of the caller; undefined if unknown. */
  readonly address: string | undefined;
  /** The trace of the request. */
  readonly trace?: TraceContext | undefined;
}

/** The revision that the stored record must have (`If-Match`); undefined for any. */
export interface Precondition {
  readonly expectedRevision: Revision | undefined;
}

/** A validated and complete new record, with the writes that store it. */
export interface PreparedRecord extends KeyedRecord {
  readonly writes: readonly Write[];
}

/** The writing verbs of every resource. Each commits completely, or rejects with the Fault of the rule it violates. */
export interface Directory {
  /** Builds a record and writes nothing. Rejects with Fault `invalid`, `conflict`, `overloaded`. */
  prepare(resource: Resource, scope: KeyPrefix, data: JsonObject, by: WriteContext): Promise<PreparedRecord>;
  /**
   * Writes a prepared record and the idempotency record of its request. Returns false if the same request was answered
   * concurrently. Rejects with Fault `conflict`, `not_found` (for a parent), `overloaded`.
   */
  create(prepared: PreparedRecord, answer?: IdempotencyRecord): Promise<boolean>;
  /** Partial: members that `data` omits stay. Rejects like the two above, and with `precondition_failed`. */
  update(resource: Resource, key: Key, data: JsonObject, by: WriteContext & Precondition): Promise<AnyRecord>;
  /** Rejects with `not_found`, `precondition_failed`, and `conflict` for a protected record or too many dependents. */
  remove(resource: Resource, key: Key, by: WriteContext & Precondition): Promise<void>;
}

/** Turns input into a record, for one resource and verb. */
interface Preparation {
  readonly read: InputReader;
  readonly finish: Finish;
  readonly guardsOf: GuardsOf;
}

export function openDirectory(
  store: Store,
  makers: DirectoryDeps,
  settings: DirectorySettings,
  clock: Clock,
): Directory {
  const preparationOf = preparations(makers, settings);

  return {
    async prepare(resource, scope, data, by) {
      const { read, finish, guardsOf } = preparationOf(resource, 'create');
      const key = [...scope, clock.mintId()] as unknown as Key;
      const members = await finish({ key, input: read(data), trace: by.trace });
      const stamp = stampOf(by, clock);
      const insert = draftRecord(resource, key, members, stamp);
      const { record } = insert;
      const writes = [{ ...insert, guards: guardsOf(record) }, ...parentTouches(resource, key, stamp)];
      return { key, record, writes };
    },

    async create({ writes }, answer) {
      const result = await store.commit(writes, answer);
      if (result.kind === 'already_answered') return false;
      assertWritten(result);
      return true;
    },

    async update(resource, key, data, by) {
      const { read, finish, guardsOf } = preparationOf(resource, 'update');
      const input = read(data);
      assertBodyId(resource, key, data);
      const members = await finish({ key, input, trace: by.trace });
      const stamp = stampOf(by, clock);
      const precondition = by.expectedRevision === undefined ? {} : { expectedRevision: by.expectedRevision };
      const patch = {
        ...draftPatch(resource, key, members, stamp),
        ...precondition,
        guards: guardsOf(members),
      };
      const result = await store.commit([patch, ...parentTouches(resource, key, stamp)]);
      assertWritten(result);
      return patchedRecord(result);
    },

    async remove(resource, key, by) {
      const precondition = by.expectedRevision === undefined ? {} : { expectedRevision: by.expectedRevision };
      const { kind } = await store.remove({ resource, key, ...precondition, ...stampOf(by, clock) });
      switch (kind) {
        case 'removed':
          return;
        case 'not_found':
          throw new Fault('not_found');
        case 'revision_mismatch':
          throw new Fault('precondition_failed');
        case 'protected':
          throw fieldConflict('data.id', 'this record is kept and cannot be deleted');
        case 'too_many':
          throw fieldConflict('data.id', tooManyRule(await tryCountBelow(store, resource, key)));
      }
    },
  };
}

/** The preparations of all resources and verbs, each created at its first use. */
function preparations(makers: DirectoryDeps, settings: DirectorySettings) {
  const known = { create: new Map<Resource, Preparation>(), update: new Map<Resource, Preparation>() };
  return (resource: Resource, verb: InputVerb): Preparation => {
    const cached = known[verb].get(resource);
    if (cached) return cached;
    const preparation = {
      read: inputReaderFor(resource, verb),
      finish: finisherFor(resource, verb, makers, settings),
      guardsOf: guardsFor(resource, settings),
    };
    known[verb].set(resource, preparation);
    return preparation;
  };
}

/** A write below a user updates the user as well (docs/wire.md#users); a write directly below a realm does not. */
function parentTouches({ parent }: Resource, key: Key, stamp: Stamp): readonly Write[] {
  const above = parentKey(key);
  return parent?.parent && above ? [{ ...draftPatch(parent, above, {}, stamp), isTouch: true }] : [];
}

/** Writes records in one commit. Rejects with Fault `conflict` or `not_found` if the store rejects them. */
export async function commitWrites(store: Store, writes: readonly Write[]): Promise<void> {
  assertWritten(await store.commit(writes));
}

function patchedRecord(result: WriteResult): AnyRecord {
  const record = result.kind === 'written' ? result.patched?.[0] : undefined;
  if (!record) throw new Error('a patch returned no record');
  return record;
}

/** Counts the dependents of a record; undefined if counting takes too long. */
async function tryCountBelow(store: Store, resource: Resource, key: Key): Promise<number | undefined> {
  try {
    return await store.countBelow(resource, key);
  } catch (error) {
    if (error instanceof Fault && FAULTS[error.code].status === 503) return undefined;
    throw error;
  }
}

function tooManyRule(count: number | undefined): string {
  const most = LIMITS.cascadeRecordsMax;
  const way = 'authrealm purge removes them';
  // The count can be below the limit: records are deleted meanwhile, and idempotency records count as well.
  return count !== undefined && count > most
    ? `${count} records would go with this one, more than ${most}: ${way}`
    : `more than ${most} records would go with this one: ${way}`;
}

/** Throws the Fault of a result, unless the write was committed. */
function assertWritten(result: WriteResult): void {
  switch (result.kind) {
    case 'written':
      return;
    case 'not_found':
      throw new Fault('not_found');
    case 'revision_mismatch':
      throw new Fault('precondition_failed');
    case 'unique':
      throw new Fault(
        'conflict',
        result.members.map((name) => fieldError(name, uniqueRule(result.members, name))),
      );
    case 'foreign_key':
      throw fieldConflict(`data.${result.member}`, 'must name a record of the realm');
    case 'guard':
      throw fieldConflict(`data.${fieldOf(result.guard)}`, guardRule(result.guard));
    case 'already_answered':
      throw new Error('a write without an idempotency key has no idempotency record');
  }
}

function fieldError(member: string, rule: string): FieldError {
  return { field: `data.${member}`, rule };
}

function uniqueRule(members: readonly string[], name: string): string {
  const others = members.filter((other) => other !== name);
  const together = others.length === 0 ? '' : `, together with ${others.join(' and ')}`;
  return `must be unique in the realm${together}`;
}

/** A conflict about one member. */
function fieldConflict(field: string, rule: string): Fault {
  return new Fault('conflict', [{ field, rule }]);
}

/** The member that the caller wrote. */
function fieldOf(guard: Guard): string {
  return guard.kind === 'unreferenced' ? guard.input : guard.member;
}

function guardRule(guard: Guard): string {
  switch (guard.kind) {
    case 'unless':
      return `must be an e-mail address where ${guard.condition.member} is ${guard.condition.equals}`;
    case 'same':
      return `must be the ${guard.of} of the record in ${guard.reference}`;
    case 'unreferenced':
      return 'cannot change while records refer to this one';
  }
}
