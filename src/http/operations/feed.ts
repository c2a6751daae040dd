import { HEADERS } from '../openapi/responses.ts';
import type { Operation } from '../pipeline/operation.ts';
import { changes, FEED_SCOPE, type FeedDeps, heads } from './changes.ts';
import { changesContent, changesParameters, headsContent, headsQuery } from './feed_schemas.ts';

const listChanges: Operation<FeedDeps> = {
  name: 'list-changes',
  method: 'GET',
  path: '/v2/authentication-realms/:realm_id/changes',
  access: { scope: FEED_SCOPE },
  locates: 'key',
  handle: changes,
  document: ({ baseUrl, examples }) => ({
    summary:
      'List the changes of a realm in order, from the start or after a cursor; `Accept: text/event-stream` streams new ones.',
    tag: 'changes',
    isExtension: true,
    ...changesParameters(),
    success: {
      status: 200,
      description:
        'The next changes and the cursor to continue from. A stream sends the cursor of each change as `id`, and the reason when it ends.',
      headers: CACHING,
      content: changesContent(baseUrl, examples),
    },
    faults: ['not_found', 'expired_cursor'],
  }),
};

const listChangeHeads: Operation<FeedDeps> = {
  name: 'list-change-heads',
  method: 'GET',
  path: '/v2/changes',
  access: { scope: FEED_SCOPE },
  handle: heads,
  document: ({ baseUrl }) => ({
    summary: 'Get the cursor after the newest change of each realm that the token may read.',
    tag: 'changes',
    isExtension: true,
    query: headsQuery(),
    success: {
      status: 200,
      description: 'The realms, ordered by ID.',
      headers: CACHING,
      content: headsContent(baseUrl),
    },
  }),
};

/** The change feed: the changes of a realm as pages or as a stream, and the newest position of every realm. */
export const FEED_OPERATIONS: readonly Operation<FeedDeps>[] = [listChanges, listChangeHeads];

const CACHING = {
  'Cache-Control': HEADERS.cacheControl,
  Vary: HEADERS.vary,
};
