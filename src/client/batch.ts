import type { CollectionName } from '../model/resources.ts';
import { parseIdentifier, recordPath } from './address.ts';
import { collectionPath, postOnce } from './calls.ts';
import type { CreateOptions, Described, WriteOptions } from './collection.ts';
import { readResponses, readSingle, writeSingle } from './envelope.ts';
import type { SendRequest } from './exchange.ts';
import type { ChangesOf, KeyOf, NewOf, RecordWithEtag, ScopeOf } from './record_types.ts';
import { WIRE_FORMATS, type WireFormat } from './wires.ts';

type OfRealm = Exclude<CollectionName, 'realms'>;

/** One write of a batch: the arguments of the method with this name. */
export type BatchRequest = {
  [N in OfRealm]:
    | { readonly create: N; readonly scope: ScopeOf<Described<N>>; readonly input: NewOf<Described<N>> }
    | (Condition & {
        readonly update: N;
        readonly key: KeyOf<Described<N>>;
        readonly changes: ChangesOf<Described<N>>;
      })
    | (Condition & { readonly delete: N; readonly key: KeyOf<Described<N>> });
}[OfRealm];

type Condition = Pick<WriteOptions, 'ifMatch'>;

/** The record of a create or update after the whole batch; undefined for a delete, and if it has been deleted since. */
export type BatchResult<B extends BatchRequest> = B extends
  | { readonly create: infer N extends CollectionName }
  | { readonly update: infer N extends CollectionName }
  ? RecordWithEtag<Described<N>> | undefined
  : undefined;

/** Writes up to 100 records of a realm in one request, all or nothing. Errors name the request by its index. */
export type WriteBatch = <const B extends readonly BatchRequest[]>(
  realm: string,
  requests: B,
  options?: CreateOptions,
) => Promise<{ readonly [I in keyof B]: BatchResult<B[I]> }>;

/** A request of any collection. */
interface AnyRequest extends Condition {
  readonly create?: string;
  readonly update?: string;
  readonly delete?: string;
  readonly scope?: readonly string[];
  readonly key?: readonly string[];
  readonly input?: Readonly<Record<string, unknown>>;
  readonly changes?: Readonly<Record<string, unknown>>;
}

export function openBatch(send: SendRequest): WriteBatch {
  return async (realm, requests, options) => {
    const known = requests as readonly AnyRequest[];
    const path = `/v2/${WIRE_FORMATS.realms.collections[0]}/${parseIdentifier(realm, 'realm')}/batch`;
    const answer = await postOnce(send, path, { requests: known.map(itemOf) }, options);
    const responses = readResponses(answer.body, known.length);
    return known.map((request, index) => resultOf(request, responses[index] ?? {})) as never;
  };
}

function itemOf({ ifMatch, ...request }: AnyRequest): object {
  const wire = wireOf(request);
  const condition = ifMatch === undefined ? {} : { if_match: ifMatch };
  const { scope = [], key = [], input, changes } = request;
  if (request.create !== undefined)
    return { method: 'POST', path: collectionPath(wire, scope), body: writeSingle(wire, input ?? {}) };
  const path = recordPath(wire, key, wire.collections.length);
  if (request.update === undefined) return { method: 'DELETE', path, ...condition };
  return { method: 'PUT', path, body: writeSingle(wire, changes ?? {}), ...condition };
}

function wireOf({ create, update, delete: removed }: AnyRequest): WireFormat {
  const wire = WIRE_FORMATS[(create ?? update ?? removed) as CollectionName];
  if (!wire)
    throw new TypeError('each request must have create, update or delete with the name of a collection');
  return wire;
}

function resultOf(request: AnyRequest, { etag, body }: { readonly etag?: unknown; readonly body?: unknown }) {
  if (body === undefined) return undefined;
  const above = request.scope ?? request.key?.slice(0, -1) ?? [];
  return { ...readSingle(wireOf(request), body, above), etag };
}
