import { z } from 'zod';
import { Fault } from '../../model/fault.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Key } from '../../model/resource.ts';
import { realm, user } from '../../model/resources.ts';
import type { WriteRequest } from '../../records/write_request.ts';
import { exampleIdOf, requestExample } from '../openapi/examples.ts';
import { pathParameters } from '../openapi/parameters.ts';
import { EXTENSION, jsonAnswer, REVALIDATED } from '../openapi/responses.ts';
import { parseDocument } from '../pipeline/body.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import { openIncludedPresenter } from '../pipeline/included_presenter.ts';
import { collectionPattern, selfLinks } from '../pipeline/links.ts';
import type { Documentation, DocumentContext, Operation } from '../pipeline/operation.ts';
import { type RecordDeps, recordReply, refuseWithout } from '../pipeline/pipeline.ts';
import { preconditionReader } from '../pipeline/precondition.ts';
import { etags } from '../pipeline/present.ts';
import { BATCH_METHODS, BATCH_RESOURCES, type BatchItem, readBatchItems } from './batch_items.ts';
import { includedIn, readCreated, writeScopes } from './included.ts';
import { requestContext } from './record_writes.ts';

/** The scopes of the requests of batches: a token needs at least one of them for any batch. */
const SCOPES: readonly string[] = [...new Set(writeScopes(BATCH_RESOURCES))];

const NAME = 'batch';

/**
 * Several writes of one realm, all or nothing. The names are those of the batches of OData and Microsoft Graph. Checks in
 * this order: authentication (401), any scope (403), path (404), body, the scope of each request (403), then once for each
 * idempotency key: realm (404), requests (400), members (400, 422), commit (404, 412, 422).
 */
export const WRITE_BATCH: Operation<RecordDeps> = {
  name: 'write-batch',
  method: 'POST',
  path: `${collectionPattern(realm)}/:realm_id/${NAME}`,
  access: { anyScope: SCOPES },
  work: 'write',
  locates: 'scope',
  body: 'json',
  handle: batchHandler,
  document: documentBatch,
};

/** The scopes of each request, and of the records that it creates by `included`. */
function scopesOf(items: readonly BatchItem[]): readonly string[] {
  return items.flatMap(({ method, resource, body }) =>
    writeScopes([resource, ...(method === 'POST' ? includedIn(resource, body) : [])]),
  );
}

function realmOf({ scope }: Call): Uuid {
  return scope?.[0] as Uuid;
}

function batchHandler(deps: RecordDeps): CallHandler {
  const { store, writeRecords, withIdempotency, baseUrl } = deps;
  const requiredRevision = preconditionReader(etags(baseUrl));
  const respond = openResponses(deps);

  function requestOf({ resource, method, ids, body = {}, ifMatch, item }: BatchItem): WriteRequest {
    if (method === 'POST') return { verb: 'create', resource, scope: ids, body, item };
    const key = ids as unknown as Key;
    const expectedRevision = requiredRevision(ifMatch ?? null);
    return method === 'PUT'
      ? { verb: 'update', resource, key, body, expectedRevision, item }
      : { verb: 'remove', resource, key, expectedRevision, item };
  }

  const replyWith = async (call: Call, items: readonly BatchItem[], created: readonly Uuid[]) =>
    recordReply(call, await respond(items, created));

  return (call) => {
    const document = parseDocument(call.body ?? '');
    const requests = document instanceof Fault ? undefined : document.requests;
    const { items, errors } = readBatchItems(requests, realmOf(call));
    const refused = refuseWithout(call, scopesOf(items));
    if (refused) return refused;
    const check = async () => {
      if (document instanceof Fault) throw document;
      if (!(await store.get(realm, [realmOf(call)]))) throw new Fault('not_found');
      if (errors.length > 0) throw new Fault('invalid', errors);
    };
    return withIdempotency(call, {
      collection: NAME,
      async execute(idempotencyRecordOf) {
        await check();
        const written = await writeRecords(items.map(requestOf), requestContext(call), idempotencyRecordOf);
        const created = written?.created.map(({ record }) => record.id);
        return created && (await afterCommit(replyWith(call, items, created)));
      },
      async repeat(created) {
        await check();
        return await replyWith(call, items, created);
      },
    });
  };
}

/**
 * Makes the responses to the requests of a committed batch, with the records as they are now; `created`: the IDs of those that it
 * created, in order. The response of a deleted record has no body.
 */
function openResponses(deps: RecordDeps) {
  const { store, baseUrl } = deps;
  const etagOf = etags(baseUrl);
  const presenters = new Map(
    BATCH_RESOURCES.map((resource) => [resource, openIncludedPresenter(resource, deps)]),
  );

  async function respond({ method, resource, body = {} }: BatchItem, key: Key): Promise<string> {
    if (method === 'DELETE') return '{"status":204}';
    const isNew = method === 'POST';
    const location = () => selfLinks({ ...resource, selfPrefix: '/v2' }, baseUrl)(key);
    const start = isNew ? `{"status":201,"location":"${location()}"` : '{"status":200';
    const found = await readCreated(store, resource, key, isNew ? body : {});
    if (!found) return `${start}}`;
    const etag = JSON.stringify(etagOf(found.record));
    return `${start},"etag":${etag},"body":${presenters.get(resource)?.(key, found)}}`;
  }

  return async (items: readonly BatchItem[], created: readonly Uuid[]): Promise<string> => {
    const ids = created.values();
    const responses = items.map((item) => {
      const key = item.method === 'POST' ? [...item.ids, ids.next().value] : item.ids;
      return respond(item, key as unknown as Key);
    });
    return `{"responses":[${(await Promise.all(responses)).join()}]}`;
  };
}

/** The batch is committed: if its records cannot be read, the caller does not know the outcome. */
async function afterCommit<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof Fault ? new Fault('unknown_outcome', [], error) : error;
  }
}

function documentBatch(context: DocumentContext): Documentation {
  const realms = collectionPattern(realm);
  const path = `${realms}/${exampleIdOf(realm)}/${user.collection}`;
  const { data } = requestExample(user, 'update') as { readonly data: { readonly type: string } };
  const update = { data: { type: data.type, given_name: 'Janet' } };
  const record = context.examples.record(user);
  const { location, etag } = { location: context.examples.location(user), etag: context.examples.etag };
  return {
    summary: 'Write several records of a realm in one transaction, all or nothing.',
    description:
      'Each request has the method, path and body of a single one, and each response its status and body. Errors name the ' +
      'request. Requires the scope of each request. Repeated with its `Idempotency-Key`, a batch returns the records as they ' +
      `are then. At most ${LIMITS.recordsPerRequestMax} records and ${LIMITS.passwordsPerRequestMax} passwords.`,
    tag: realm.name,
    isExtension: true,
    path: pathParameters(user, ['realm_id']),
    headers: ['Idempotency-Key', 'X-Request-Id'],
    body: {
      schema: batchSchema(),
      example: {
        requests: [
          { method: 'POST', path, body: requestExample(user, 'create') },
          { method: 'PUT', path: `${path}/${exampleIdOf(user)}`, body: update },
        ],
      },
    },
    success: jsonAnswer('A response for each request, in their order.', REVALIDATED, responsesSchema(), {
      responses: [
        { status: 201, location, etag, body: record },
        { status: 200, etag, body: record },
      ],
    }),
    faults: ['precondition_failed', 'conflict'],
  };
}

function batchSchema(): z.ZodType {
  const request = z.object({
    method: z.enum(BATCH_METHODS),
    path: z.string().regex(/^\//).meta({ description: 'The path of the request, below the base URL.' }),
    body: z.looseObject({}).optional().meta({ description: 'The body of a POST or PUT.' }),
    if_match: z.string().optional().meta({
      description: 'Of a PUT or DELETE: like the header `If-Match`.',
    }),
  });
  return z
    .object({ requests: z.array(request).min(1).max(LIMITS.recordsPerRequestMax) })
    .meta({ id: 'batch', ...EXTENSION });
}

function responsesSchema(): z.ZodType {
  const response = z.strictObject({
    status: z.literal([200, 201, 204]),
    location: z.string().optional().meta({ format: 'uri', description: 'The address of a new record.' }),
    etag: z.string().optional(),
    // A union of all resources, which only `data.type` tells apart, is too much for generators of typed languages.
    body: z.looseObject({}).optional().meta({
      description:
        'The record, as the request by itself returns it; absent after a DELETE, and if it has been deleted since.',
    }),
  });
  return z.strictObject({ responses: z.array(response) }).meta({ id: 'batch.responses', ...EXTENSION });
}
