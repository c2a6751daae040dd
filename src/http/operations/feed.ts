import { fixedHeader, HEADERS } from '../openapi/responses.ts';
import { authenticate } from '../pipeline/bearer.ts';
import type { Operation } from '../pipeline/operation.ts';
import { locateBy, permit } from '../pipeline/pipeline.ts';
import { changes, FEED_SCOPE, type FeedDeps, heads } from './changes.ts';
import { changesContent, changesParameters, headsContent, headsQuery } from './feed_schemas.ts';

/** Who may read the feed. */
const authorizeFeed = ({ tokens, limits }: FeedDeps) => [authenticate(tokens, limits), permit(FEED_SCOPE)];

const listChanges: Operation<FeedDeps> = {
  name: 'list-changes',
  method: 'GET',
  path: '/v2/authentication-realms/:realm_id/changes',
  access: { scope: FEED_SCOPE },
  stages: (deps) => [...authorizeFeed(deps), locateBy(['realm_id']), changes(deps)],
  document: ({ baseUrl, examples }) => ({
    summary:
      'The changes of a realm in their order, or from a cursor on; with `Accept: text/event-stream` as they come.',
    tag: 'changes',
    isExtension: true,
    ...changesParameters(),
    success: {
      status: 200,
      description:
        'The next changes, and where to go on. A stream says each with its cursor as `id`, and why it ended.',
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
  stages: (deps) => [...authorizeFeed(deps), heads(deps)],
  document: ({ baseUrl }) => ({
    summary: 'The cursor behind the newest change of each realm that the token may read.',
    tag: 'changes',
    isExtension: true,
    query: headsQuery(),
    success: {
      status: 200,
      description: 'Realms in the order of their IDs.',
      headers: CACHING,
      content: headsContent(baseUrl),
    },
  }),
};

/** The change feed: the changes of a realm as pages or as a stream, and how far all realms are. */
export const FEED_OPERATIONS: readonly Operation<FeedDeps>[] = [listChanges, listChangeHeads];

const CACHING = {
  'Cache-Control': HEADERS.cacheControl,
  Vary: fixedHeader('A path has two forms.', 'Accept', 'vary'),
};
