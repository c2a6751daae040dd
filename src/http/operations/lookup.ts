import { LIMITS } from '../../model/limits.ts';
import type { AnyRecord, Key, Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import { includeParameter } from '../openapi/parameters.ts';
import { authenticate } from '../pipeline/bearer.ts';
import { runStages, type Stage } from '../pipeline/call.ts';
import type { Operation } from '../pipeline/operation.ts';
import { locate, permit, RECORD_CACHING, type RecordDeps, read, shedLoad } from '../pipeline/pipeline.ts';
import { etags, matchesEtag, type Presenter, presenterOf } from '../pipeline/present.ts';
import { JSON_TYPE, REQUEST_ID } from '../server/reply.ts';
import { includingStages } from './included.ts';
import { recordAnswer, recordOperation } from './record_operation.ts';

/**
 * A lookup by ID. The router has matched the path; the stages follow in order: authentication (401), scope (403), realm
 * (404, before the store is read), the record by its full key (404), preconditions (304), the body.
 */
export function lookup(resource: Resource, path: string): Operation<RecordDeps> {
  const includes = includableBelow(resource);
  return recordOperation(resource, {
    name: `get-${resource.name}`,
    method: 'GET',
    path,
    right: 'read',
    includes,
    loopUse: 'lookup',
    admitsItself: true,
    handle: (deps) => {
      const { store, tokens, limits, loopBudget, baseUrl } = deps;
      return runStages([
        loopBudget.countLookup,
        ...shedLoad(store.overloaded.get),
        authenticate(tokens, limits),
        permit(`${resource.scope}:read`),
        ...includingStages(resource, deps),
        locate(resource),
        read(resource, store),
        compare(etags(baseUrl)),
        present(presenterOf(resource, deps)),
      ]);
    },
    document: (context) => ({
      summary: `Look up a ${resource.words[0]} by ID.`,
      ...(includes.length > 0 ? { query: includeParameter(includes, INCLUDE) } : {}),
      headers: ['If-None-Match'],
      success: { status: 200, description: 'The record.', ...recordAnswer(resource, context) },
    }),
  });
}

const INCLUDE =
  `Adds the newest ${LIMITS.includedRecordsMax} records of each of these kinds in \`included\`. Requires their read ` +
  'scopes. Unknown values are ignored. Such an answer is never 304.';

function compare(etagOf: (record: AnyRecord) => string): Stage {
  return (call) => {
    call.etag = etagOf(call.record as AnyRecord);
    const named = call.request.headers.get('if-none-match');
    if (named === null || !matchesEtag(named, call.etag)) return undefined;
    const headers = { ETag: call.etag, 'Cache-Control': RECORD_CACHING, [REQUEST_ID]: call.requestId };
    return { status: 304, headers, body: null };
  };
}

function present(presenter: Presenter): Stage {
  return (call) => ({
    status: 200,
    headers: {
      'Content-Type': JSON_TYPE,
      ETag: call.etag as string,
      'Cache-Control': RECORD_CACHING,
      [REQUEST_ID]: call.requestId,
    },
    body: presenter(call.record as AnyRecord, call.key as Key),
  });
}
