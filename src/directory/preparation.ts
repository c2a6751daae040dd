import type { Clock } from '../domain/id.ts';
import { type AnyRecord, type Key, parentKey, type Resource } from '../domain/resource.ts';
import { includableBelow } from '../domain/resources.ts';
import { draftPatch, draftRecord, type Stamp, stampOf } from './draft.ts';
import {
  type DirectoryDeps,
  type DirectorySettings,
  type Finish,
  finisherFor,
  type GuardsOf,
  guardsFor,
} from './finishing.ts';
import { collectFieldErrors, type InputReader, type InputVerb, inputReaderFor } from './input.ts';
import { bodyField, checkCosts, openParts, type Part } from './parts.ts';
import type { IncludedRecords, Insert, Removal, RemovalWrite, Write } from './store.ts';
import type { WriteContext, WriteRequest } from './write_request.ts';

/** A write, and where its request has it. */
export interface PlacedWrite {
  readonly write: Write | RemovalWrite;
  readonly item: WriteRequest['item'];
  /** Where the request has the members of the record. */
  readonly at: string;
}

/** A validated request, with the writes that store it. */
export interface PreparedRequest {
  readonly resource: Resource;
  readonly key: Key;
  readonly writes: readonly PlacedWrite[];
  /** The new record of a create. */
  readonly record?: AnyRecord;
  /** The new records below it; absent if the request has no `included`. */
  readonly included?: readonly IncludedRecords[];
}

/** Turns input into a record, for one resource and verb. */
interface Preparation {
  readonly read: InputReader;
  readonly finish: Finish;
  readonly guardsOf: GuardsOf;
}

type PreparationOf = (resource: Resource, verb: InputVerb) => Preparation;

type FinishedPart = Part & { readonly members: Readonly<Record<string, unknown>> };

/** A request and the records that it writes. */
interface ReadRequest<P extends Part = Part> {
  readonly request: WriteRequest;
  readonly parts: readonly P[];
}
type FinishedRequest = ReadRequest<FinishedPart>;

type WritePrecondition = Pick<Removal, 'expectedRevision'>;

/**
 * Builds the writes of requests that are committed together, and stores nothing. Rejects with all errors of all requests:
 * Fault `invalid` or `conflict`, or with `overloaded`.
 */
export type Prepare = (
  requests: readonly WriteRequest[],
  by: WriteContext,
) => Promise<readonly PreparedRequest[]>;

export function openPreparation(makers: DirectoryDeps, settings: DirectorySettings, clock: Clock): Prepare {
  const preparationOf = preparations(makers, settings);
  const readParts = openParts((resource, verb) => preparationOf(resource, verb).read, clock);

  async function finish({ parts, ...read }: ReadRequest, by: WriteContext) {
    const finished = parts.map(async (part): Promise<FinishedPart> => {
      const members = await preparationOf(part.resource, part.verb).finish({ ...part, by });
      return { ...part, members };
    });
    return { ...read, parts: await Promise.all(finished) };
  }

  /** The write of a record and, below a user that exists already, one that touches the user. */
  function writesOf(part: FinishedPart, precondition: WritePrecondition, stamp: Stamp): readonly Write[] {
    const { resource, verb, key, members, input, isIncluded } = part;
    const { guardsOf } = preparationOf(resource, verb);
    const touches = isIncluded ? [] : parentTouches(resource, key, stamp);
    if (verb === 'create') {
      const insert = draftRecord(resource, key, members, stamp);
      return [{ ...insert, guards: guardsOf(insert.record, input.members) }, ...touches];
    }
    const patch = { ...draftPatch(resource, key, members, stamp), guards: guardsOf(members, input.members) };
    return [{ ...patch, ...precondition }, ...touches];
  }

  function complete({ request, parts }: FinishedRequest, stamp: Stamp): PreparedRequest {
    const { resource, item } = request;
    const precondition = preconditionOf(request);
    if (request.verb === 'remove') {
      const { key } = request;
      const write = { op: 'remove', resource, key, ...precondition, ...stamp } as const;
      return { resource, key, writes: [{ write, item, at: bodyField(request, 'data') }] };
    }
    const writes = parts.flatMap((part) =>
      writesOf(part, precondition, stamp).map((write): PlacedWrite => ({ write, item, at: part.at })),
    );
    const [own, ...below] = writes.flatMap(({ write }) => (write.op === 'insert' ? [write] : []));
    const hasIncluded = request.body.included !== undefined && includableBelow(resource).length > 0;
    return {
      ...{ resource, key: parts[0]?.key as Key, writes },
      ...(own ? { record: own.record } : {}),
      ...(hasIncluded ? { included: newestFirst(resource, below) } : {}),
    };
  }

  return async (requests, by) => {
    const errors = collectFieldErrors();
    const read = requests.map((request) => ({ request, parts: readParts(request, errors) }));
    checkCosts(
      read.flatMap(({ parts }) => parts),
      errors,
    );
    errors.throwIfAny();
    const finished = await Promise.all(read.map((each) => finish(each, by)));
    const stamp = stampOf(by, clock);
    return finished.map((each) => complete(each, stamp));
  };
}

function preconditionOf(request: WriteRequest): WritePrecondition {
  if (request.verb === 'create' || request.expectedRevision === undefined) return {};
  return { expectedRevision: request.expectedRevision };
}

/** A write below a user updates the user as well (docs/wire.md#users); a write directly below a realm does not. */
function parentTouches({ parent }: Resource, key: Key, stamp: Stamp): readonly Write[] {
  const above = parentKey(key);
  return parent?.parent && above ? [{ ...draftPatch(parent, above, {}, stamp), isTouch: true }] : [];
}

/** New records in the order of a list: they have the same time, so their IDs decide. */
function newestFirst(parent: Resource, inserts: readonly Insert[]): readonly IncludedRecords[] {
  return includableBelow(parent).map((resource) => {
    const records = inserts.filter((insert) => insert.resource === resource).map(({ record }) => record);
    return { resource, records: records.sort((a, b) => (a.id < b.id ? 1 : -1)), hasMore: false };
  });
}

/** The preparations of all resources and verbs, each created at its first use. */
function preparations(makers: DirectoryDeps, settings: DirectorySettings): PreparationOf {
  const known = { create: new Map<Resource, Preparation>(), update: new Map<Resource, Preparation>() };
  return (resource, verb) => {
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
