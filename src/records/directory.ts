import { conflict, Fault, type FieldError } from '../model/fault.ts';
import { lookupKeyOf } from '../model/filter/lookup_filter.ts';
import type { Clock, Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { parentKey } from '../model/resource.ts';
import type { CommitRefusal, Guard, IdempotencyRecord, Store, Write } from '../model/store.ts';
import { openPlanning, type PlannedWrite } from './plan.ts';
import type { WriteContext, WriteRequest } from './write_request.ts';
import type { DirectoryDeps, DirectorySettings } from './write_rules.ts';

export type WriteRecords = ReturnType<typeof openDirectory>;

export function openDirectory(store: Store, deps: DirectoryDeps, settings: DirectorySettings, clock: Clock) {
  const plan = openPlanning(deps, settings, clock);
  /**
   * Writes the records of requests in one commit, with the idempotency record that `answerOf` makes of the IDs of those that it creates.
   * Commits completely, or rejects: with all errors of all requests, Fault `invalid` or `conflict`, or with the Fault of the rule that the
   * commit violates, `conflict`, `not_found`, `precondition_failed`, `overloaded`. Returns the new records in the order of the requests,
   * those in `included`, and the records that it patched; undefined if the same request was answered concurrently.
   */
  return async (
    requests: readonly WriteRequest[],
    by: WriteContext,
    answerOf?: (created: readonly Uuid[]) => IdempotencyRecord,
  ) => {
    const { writes, created, included } = await plan(requests, by);
    const result = await store.commit(writes, answerOf?.(created.map(({ record }) => record.id)));
    if (result.kind === 'already_answered') return undefined;
    if (result.kind === 'written') return { created, included, patched: result.patched ?? [] };
    throw await faultOf(result, writes[result.index ?? 0] as PlannedWrite, store);
  };
}

/** Writes records in one commit. They are valid and new: a refusal is a bug. */
export async function commitWrites(store: Store, writes: readonly Write[]): Promise<void> {
  const { kind } = await store.commit(writes);
  if (kind !== 'written') throw new Error(`the records were not written: ${kind}`);
}

/** The Fault of a refused write. It names the place of the write in its request. */
async function faultOf(refusal: CommitRefusal, planned: PlannedWrite, store: Store): Promise<Fault> {
  const { at } = planned;
  switch (refusal.kind) {
    case 'not_found':
      return new Fault('not_found', errorsAbout(planned, 'path', 'names no record'));
    case 'revision_mismatch':
      return new Fault(
        'precondition_failed',
        errorsAbout(planned, 'if_match', 'is not the ETag of the record'),
      );
    case 'unique': {
      const { members } = refusal;
      const owner = (await hasSameParent(planned, members, store))
        ? `: the same ${planned.resource.parent?.name} has it already`
        : '';
      return new Fault(
        'conflict',
        members.map((name) => ({ field: `${at}.${name}`, rule: `${uniqueRule(members, name)}${owner}` })),
      );
    }
    case 'foreign_key':
      return conflict(`${at}.${refusal.member}`, 'must name a record of the realm');
    case 'guard': {
      const { guard } = refusal;
      // The member that the caller wrote.
      const member = 'input' in guard ? guard.input : guard.member;
      return conflict(`${at}.${member}`, guardRule(guard));
    }
    case 'protected':
      return conflict(removedField(planned), 'this record is kept and cannot be deleted');
    case 'too_many':
      return conflict(removedField(planned), tooManyRule(planned));
  }
}

/**
 * Whether the record that already has these members of a write belongs to the same user. A caller learns nothing else of it.
 */
async function hasSameParent(
  write: PlannedWrite,
  members: readonly string[],
  store: Store,
): Promise<boolean> {
  const { resource, key } = write;
  const { by = [], filterables = {} } = resource.reverseLookup ?? {};
  const named = by.find(
    (set) => set.length === members.length && set.every((name) => members.includes(name)),
  );
  if (!named || write.op === 'remove') return false;
  const written =
    write.op === 'patch' ? { ...(await store.get(resource, key)), ...write.patch.members } : write.record;
  const lookup = lookupKeyOf(written, named, filterables);
  const found = lookup && (await store.find(resource, key[0], lookup));
  return found !== undefined && parentKey(found.key)?.join() === parentKey(key)?.join();
}

/** The error of an item of a batch; none for a request with one write. */
function errorsAbout({ item }: PlannedWrite, name: string, rule: string): readonly FieldError[] {
  return item === undefined ? [] : [{ field: `${item}.${name}`, rule }];
}

/** A DELETE has no body: by itself it names the record, in a batch its path does. */
function removedField({ item, at }: PlannedWrite): string {
  return item === undefined ? `${at}.id` : `${item}.path`;
}

function tooManyRule({ item }: PlannedWrite): string {
  const most = LIMITS.cascadeRecordsMax;
  return item === undefined
    ? `more than ${most} records would go with this one: authrealm delete --in-pages removes them`
    : `more than ${most} records would be deleted by this batch: delete fewer at a time`;
}

function uniqueRule(members: readonly string[], name: string): string {
  const others = members.filter((other) => other !== name);
  const together = others.length === 0 ? '' : `, together with ${others.join(' and ')}`;
  return `must be unique in the realm${together}`;
}

function guardRule(guard: Guard): string {
  switch (guard.kind) {
    case 'unless':
      return `must be an e-mail address where ${guard.condition.member} is ${guard.condition.equals}`;
    case 'same':
      return `must be the ${guard.of} of the record in ${guard.reference}`;
    case 'unreferenced':
      return `cannot change while records with another ${guard.member} refer to this one`;
    case 'unchanged':
      return `must be sent as well, because ${guard.member} changes: the stored one is for the earlier provider`;
  }
}
