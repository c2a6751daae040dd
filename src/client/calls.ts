import type { Resource } from '../model/resource.ts';
import { isVisibleAscii, VISIBLE_ASCII_RULE } from '../model/text/visible_ascii.ts';
import { recordPath } from './address.ts';
import { BOUNDS } from './bounds.ts';
import type { CallOptions, Collection, CreateOptions, Revise, WriteOptions } from './collection.ts';
import { type FlatRecord, readSingle, writeSingle } from './envelope.ts';
import { isAbsent, isStale } from './error.ts';
import { JSON_BODY, type SendRequest, type ServiceResponse } from './exchange.ts';
import { fetchPage, listRecords } from './lists.ts';
import { backoffDelay, sleep } from './retries.ts';
import type { WireFormat } from './wires.ts';

type Key = readonly string[];
export type RecordWithTag = FlatRecord & { readonly etag: string };

/** The methods of every collection. */
export function collectionMethods(wire: WireFormat, send: SendRequest): Collection<Resource> {
  const pathOf = (key: Key) => recordPath(wire, key, wire.collections.length);

  const get = async (key: Key, { signal }: CallOptions = {}): Promise<RecordWithTag> =>
    recordWithTag(wire, await send({ method: 'GET', path: pathOf(key), signal }), key.slice(0, -1));

  const update = async (
    key: Key,
    changes: Readonly<Record<string, unknown>>,
    { ifMatch, signal }: WriteOptions = {},
  ): Promise<RecordWithTag> => {
    const headers = { ...JSON_BODY, ...condition(ifMatch) };
    const body = JSON.stringify(writeSingle(wire, changes));
    const answer = await send({ method: 'PUT', path: pathOf(key), headers, body, signal });
    return recordWithTag(wire, answer, key.slice(0, -1));
  };

  return {
    get,
    update,
    list: (scope, options = {}) => listRecords(wire, send, scope, options),
    page: (scope, options = {}) => fetchPage(wire, send, scope, options),
    async create(scope, input, options) {
      const answer = await postOnce(send, collectionPath(wire, scope), writeSingle(wire, input), options);
      return recordWithTag(wire, answer, scope);
    },
    modify: (key, revise, options) => modify({ get, update }, key, revise, options),
    async delete(key, { ifMatch, signal } = {}) {
      try {
        await send({ method: 'DELETE', path: pathOf(key), headers: condition(ifMatch), signal });
      } catch (error) {
        // The response of an earlier attempt was lost: that attempt deleted the record.
        if (!isAbsent(error) || !error.isUncertain) throw error;
      }
    },
  };
}

export function collectionPath(wire: WireFormat, scope: Key): string {
  return recordPath(wire, scope, wire.collections.length - 1);
}

/** Sends a POST that is executed once, however often it is repeated. */
export async function postOnce(
  send: SendRequest,
  path: string,
  input: object,
  { idempotencyKey = crypto.randomUUID(), signal }: CreateOptions = {},
): Promise<ServiceResponse> {
  const headers = { ...JSON_BODY, 'Idempotency-Key': assertVisible('idempotencyKey', idempotencyKey) };
  return send({ method: 'POST', path, headers, body: JSON.stringify(input), signal });
}

async function modify(
  { get, update }: Pick<Collection<Resource>, 'get' | 'update'>,
  key: Key,
  revise: Revise<Resource>,
  { signal }: CallOptions = {},
): Promise<RecordWithTag> {
  for (let done = 1; ; done += 1) {
    const record = await get(key, { signal });
    const changes = await revise(record);
    if (changes === undefined) return record;
    try {
      return await update(key, changes, { ifMatch: record.etag, signal });
    } catch (error) {
      // A lost attempt may have made the change; repeating it could apply it twice.
      if (!isStale(error) || error.isUncertain || done === BOUNDS.modifyAttemptsMax) throw error;
      await sleep(backoffDelay(done), signal);
    }
  }
}

export function recordWithTag(
  wire: WireFormat,
  { body, headers }: ServiceResponse,
  above: Key,
): RecordWithTag {
  // A compressing proxy turns the strong ETag of the service into a weak one, which If-Match cannot use (RFC 9110, 13.1.1).
  const etag = (headers.get('etag') ?? '').replace(/^W\//, '');
  return { ...readSingle(wire, body, above), etag };
}

function condition(ifMatch: string | undefined): Readonly<Record<string, string>> {
  return ifMatch === undefined ? {} : { 'If-Match': assertVisible('ifMatch', ifMatch) };
}

/** Throws TypeError for a value that is invalid in a header; its message does not repeat the value. */
function assertVisible(name: string, value: string): string {
  if (!isVisibleAscii(value)) throw new TypeError(`${name} must be ${VISIBLE_ASCII_RULE}`);
  return value;
}
