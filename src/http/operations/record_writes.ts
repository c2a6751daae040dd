import { Fault } from '../../model/fault.ts';
import type { Principal } from '../../model/principal.ts';
import type { Key, KeyPrefix, Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import type { IncludedRecords, Insert } from '../../model/store.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import { readTraceContext } from '../../model/trace_context.ts';
import type { WriteContext } from '../../records/write_request.ts';
import { requestExample } from '../openapi/examples.ts';
import { header } from '../openapi/responses.ts';
import { requestSchema } from '../openapi/schemas.ts';
import { documentOf, parseDocument } from '../pipeline/body.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import { recordReplies } from '../pipeline/included_presenter.ts';
import { collectionPattern, selfLinks } from '../pipeline/links.ts';
import type { FurtherNeed, Operation } from '../pipeline/operation.ts';
import { type RecordDeps, refuseWithout } from '../pipeline/pipeline.ts';
import { preconditionReader } from '../pipeline/precondition.ts';
import { etags } from '../pipeline/present.ts';
import { DONE } from '../server/reply.ts';
import { includedIn, readCreated, writeScopes } from './included.ts';
import { recordAnswer, recordOperation } from './record_operation.ts';

/**
 * A POST to a collection: authentication (401), scope (403), path (404), body (415, 413, 408), then once for each
 * idempotency key: members (400, 422), commit (404 for a missing parent, 422), and the response that GET would give.
 */
export function create(resource: Resource): Operation<RecordDeps> {
  return recordOperation(resource, {
    name: `create-${resource.name}`,
    method: 'POST',
    path: collectionPattern(resource),
    right: 'write',
    needs: needsOf(resource),
    work: 'write',
    locates: 'scope',
    body: 'json',
    handle: (deps) => createHandler(resource, deps),
    document: (context) => {
      const { headers, content } = recordAnswer(resource, context);
      const { location } = context.examples;
      const children = includableBelow(resource);
      return {
        summary: resource.creation ?? `Create a ${resource.words[0]}.`,
        ...(children.length > 0 ? { furtherScopes: writeScopes(children) } : {}),
        headers: ['Idempotency-Key'],
        body: { schema: requestSchema(resource, 'create'), example: requestExample(resource, 'create') },
        success: {
          status: 201,
          description: 'The new record, as GET returns it.',
          headers: {
            ...headers,
            Location: header('The absolute URL of the new record.', location(resource)),
          },
          content,
        },
        faults: ['conflict'],
      };
    },
  });
}

function createHandler(resource: Resource, deps: RecordDeps): CallHandler {
  const { store, writeRecords, withIdempotency } = deps;
  const mayInclude = includableBelow(resource).length > 0;
  const replyTo = recordReplies(resource, deps);
  // A proxy may let only versioned paths through, so Location is always versioned.
  const locationOf = selfLinks({ ...resource, selfPrefix: '/v2' }, deps.baseUrl);
  return (call) => {
    const scope = call.scope as KeyPrefix;
    // A body without an object is refused later, once for each idempotency key.
    const document = parseDocument(call.body ?? '');
    const body = document instanceof Fault ? undefined : document;
    const scopes = mayInclude ? writeScopes(includedIn(resource, body)) : undefined;
    const refused = scopes && refuseWithout(call, scopes);
    if (refused) return refused;
    return withIdempotency(call, {
      collection: resource.collection,
      async execute(idempotencyRecordOf) {
        if (document instanceof Fault) throw document;
        const requested = { verb: 'create', resource, scope, body: document } as const;
        const written = await writeRecords([requested], requestContext(call), idempotencyRecordOf);
        if (!written) return undefined;
        const { key, record } = written.created[0] as Insert;
        const hasIncluded = mayInclude && document.included !== undefined;
        const included = hasIncluded ? newestFirst(resource, written.included) : undefined;
        return replyTo(call, key, { record, included }, locationOf(key));
      },
      async repeat(created) {
        const key = [...scope, ...created] as unknown as Key;
        // The first request, whose body was the same, created the record.
        const found = await readCreated(store, resource, key, document as JsonObject);
        if (found) return replyTo(call, key, found, locationOf(key));
        // A cluster commits a realm and its idempotency record on two nodes: without a log the realm is not visible yet.
        const isUnknown = !resource.parent && (await store.changes(key[0], 0, 1)).length === 0;
        throw new Fault(isUnknown ? 'unknown_outcome' : 'not_found');
      },
    });
  };
}

/** New records in the order of a list: they have the same time, so their IDs decide. */
function newestFirst(parent: Resource, inserts: readonly Insert[]): readonly IncludedRecords[] {
  return includableBelow(parent).map((resource) => {
    const records = inserts.filter((insert) => insert.resource === resource).map(({ record }) => record);
    return { resource, records: records.sort((a, b) => (a.id < b.id ? 1 : -1)), hasMore: false };
  });
}

/** A PUT: like a POST, with the full key of the record, and `If-Match` (412). */
export function update(resource: Resource, path: string): Operation<RecordDeps> {
  return recordOperation(resource, {
    name: `update-${resource.name}`,
    method: 'PUT',
    path,
    right: 'write',
    work: 'write',
    locates: 'key',
    body: 'json',
    handle(deps) {
      const { writeRecords } = deps;
      const replyTo = recordReplies(resource, deps);
      const requiredRevision = preconditionReader(etags(deps.baseUrl));
      return async (call) => {
        const key = call.key as Key;
        const { headers } = call.request;
        const expectedRevision = requiredRevision(headers.get('if-match'), headers.get('if-none-match'));
        const body = documentOf(call.body ?? '');
        const request = { verb: 'update', resource, key, body, expectedRevision } as const;
        const [record] = (await writeRecords([request], requestContext(call)))?.patched ?? [];
        if (!record) throw new Error('a patch returned no record');
        return replyTo(call, key, { record });
      };
    },
    document: (context) => ({
      summary: `Change a ${resource.words[0]}. Members absent from the body are unchanged.`,
      headers: ['If-Match'],
      body: { schema: context.schemas.update(resource), example: requestExample(resource, 'update') },
      success: { status: 200, description: 'The updated record.', ...recordAnswer(resource, context) },
      // Only of the resource that ignores an ID in the body is no value refused.
      faults: resource.bodyId === 'ignored' ? ['unknown_outcome'] : ['conflict', 'unknown_outcome'],
    }),
  });
}

/** A DELETE. Its body is not read: one client sends a body (docs/wire.md#request-bodies). */
export function remove(resource: Resource, path: string): Operation<RecordDeps> {
  // No record depends on a link.
  const hasDependents = !resource.parent?.parent;
  return recordOperation(resource, {
    name: `delete-${resource.name}`,
    method: 'DELETE',
    path,
    right: 'write',
    needs: needsOf(resource),
    work: 'write',
    locates: 'key',
    handle(deps) {
      const { writeRecords } = deps;
      const requiredRevision = preconditionReader(etags(deps.baseUrl));
      return async (call) => {
        const key = call.key as Key;
        const { headers } = call.request;
        const expectedRevision = requiredRevision(headers.get('if-match'), headers.get('if-none-match'));
        const request = { verb: 'remove', resource, key, expectedRevision } as const;
        await writeRecords([request], requestContext(call));
        return DONE;
      };
    },
    document: () => ({
      summary: `Delete a ${resource.words[0]}${hasDependents ? ', the records below it and those that refer to it' : ''}.`,
      headers: ['If-Match'],
      success: { status: 204, description: 'The record is deleted.' },
      faults: hasDependents || resource.protectedBy ? ['conflict', 'unknown_outcome'] : ['unknown_outcome'],
    }),
  });
}

/** Top-level records are created and deleted by clients with access to all realms. */
function needsOf({ parent }: Resource): FurtherNeed | undefined {
  return parent ? undefined : 'access to all realms';
}

export function requestContext(call: Call): WriteContext {
  const { principal, requestId, request } = call;
  const { clientId: actor, scopes } = principal as Principal;
  const trace = readTraceContext(request.headers);
  return { actor, requestId, address: call.address(), trace, isAdmin: scopes.has('admin') };
}
