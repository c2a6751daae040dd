import { z } from 'zod';
import type { ChangeDelivery } from '../../app/change_delivery.ts';
import {
  type FeedCursor,
  feedCursor,
  parseFeedCursor,
  parseSearchCursor,
  SEARCH_CURSOR,
  searchCursor,
} from '../../deliver/feed/cursor.ts';
import { readFeed } from '../../deliver/feed/read_feed.ts';
import { searchChanges } from '../../deliver/feed/search_feed.ts';
import type { RealmHead } from '../../deliver/store/feed.ts';
import { Fault } from '../../model/fault.ts';
import type { Revision, Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import { CHANGE_VERBS } from '../../model/log/event.ts';
import type { Principal } from '../../model/principal.ts';
import { RESOURCES, realm, user } from '../../model/resources.ts';
import { filledText, identifier } from '../../model/rule.ts';
import { EXAMPLE_AT, exampleIdOf } from '../openapi/examples.ts';
import { EXTENSION, HEADERS, jsonContent } from '../openapi/responses.ts';
import { idSchema, link, timestampSchema } from '../openapi/schemas.ts';
import type { Call } from '../pipeline/call.ts';
import { asksFor } from '../pipeline/negotiation.ts';
import type { DocumentContext, Operation } from '../pipeline/operation.ts';
import { type OperationDeps, recordReply } from '../pipeline/pipeline.ts';
import { isoTimestamp } from '../pipeline/present.ts';
import { readParameters } from '../pipeline/reading.ts';
import { expiredCursorReply, NOT_FOUND_REPLY, type Reply } from '../server/reply.ts';
import type { AdminDeps } from './admin/operation.ts';
import { eventMembers } from './change_events.ts';
import { FEED_SCOPE, readableBy, STREAM_TYPE } from './change_streams.ts';
import { instant, type ProjectedMembers, projectionSchema, projector } from './projection.ts';
import { realmsOf } from './search_all_realms.ts';

/** The dependencies of the feed. */
export interface FeedDeps
  extends OperationDeps,
    Pick<AdminDeps, 'clock' | 'logReading'>,
    Pick<ChangeDelivery, 'feed' | 'writeEvents' | 'followChanges'> {}

/** The change of every example. */
const CHANGE: SequencedChange = {
  event: `${user.name}.created`,
  realm: exampleIdOf(realm),
  user: exampleIdOf(user),
  id: exampleIdOf(user),
  seq: 42,
  revision: '17a4c09be25d6f83' as Revision,
  members: [],
  actor: '019c1318-a400-7000-8000-000000000098',
  requestId: '5f0c6d7e8a9b4c3d2e1f-1a',
  address: undefined,
  at: EXAMPLE_AT,
};
const CURSOR = feedCursor('after', CHANGE);

/** Its form is checked where it is read: a stream that is resumed ignores `after`. */
const cursor = z
  .string()
  .meta({ pattern: '^[\\w-]+$', description: 'An opaque position in the feed of one realm.' });

function parameter<S extends z.ZodType>(schema: S, description: string, example: string | number) {
  return schema.optional().meta({ param: { ...EXTENSION, description, example } });
}

const pageLimit = parameter(
  z.int().min(1).max(LIMITS.pageRecordsMax),
  `The maximum number of items; ${LIMITS.pageRecordsMax} by default.`,
  LIMITS.pageRecordsMax,
);

const changesQuery = z.object({
  after: parameter(
    cursor,
    'Return changes after this cursor. By default, from the oldest retained change.',
    CURSOR,
  ),
  limit: pageLimit,
});

const idOf = (what: string) => identifier(what).meta({ format: 'uuid' });

const headsQuery = z.object({
  after: parameter(idOf('a realm'), 'Return realms after this ID.', exampleIdOf(realm)),
  limit: pageLimit,
});

const EXAMPLE_TIME = isoTimestamp(EXAMPLE_AT);
const resourceName = z.enum(RESOURCES.map(({ name }) => name));
const rfc3339 = z.iso.datetime({ offset: true, error: 'must be an instant (RFC 3339)' });

/** The conditions of a search, which are also options of `authrealm log`. */
export const CHANGE_CONDITIONS = {
  realm: parameter(idOf('a realm'), 'Only changes in this realm.', exampleIdOf(realm)),
  kind: parameter(resourceName, 'Only changes of records of this resource.', user.name),
  event: parameter(z.enum(CHANGE_VERBS), 'Only changes of this kind.', 'updated'),
  actor: parameter(filledText(), 'Only changes by this client, or another actor.', 'import'),
  user: parameter(idOf('a user'), 'Only changes of this user and of its links.', exampleIdOf(user)),
  record: parameter(idOf('a record'), 'Only changes of this record.', exampleIdOf(user)),
  from: parameter(rfc3339, 'Only changes from this time on.', EXAMPLE_TIME),
  to: parameter(rfc3339, 'Only changes until this time.', EXAMPLE_TIME),
};

const searchQuery = z.object({
  ...CHANGE_CONDITIONS,
  after: parameter(
    z.string().regex(SEARCH_CURSOR, 'must be a cursor that a search returned'),
    'Continue the search here: the cursor of `links.next`.',
    searchCursor(CHANGE),
  ),
  limit: pageLimit,
});

/** Pages of changes after a cursor, or a stream of them. */
async function answerChanges(call: Call, deps: FeedDeps): Promise<Reply> {
  const realm = call.key?.[0] as Uuid;
  const { after, limit = LIMITS.pageRecordsMax } = readParameters(changesQuery, call.request.url);
  // HEAD is answered like a page: for a stream it would never end.
  const isStream = call.request.method === 'GET' && asksFor(STREAM_TYPE, call.request);
  const resumed = isStream ? call.request.headers.get('last-event-id') : null;
  const [parameter, text] = resumed ? ['Last-Event-ID', resumed] : ['after', after];
  const place = text === undefined ? 'oldest' : cursorIn(parameter, text, realm);
  const page = await readFeed(deps.store, realm, place, limit);
  if (page.kind === 'absent') return NOT_FOUND_REPLY;
  if (page.kind === 'gone') return expiredCursorReply(page.oldest);
  if (isStream) return deps.followChanges(call, realm, place);
  const { changes, hasMore } = page;
  const events = await deps.writeEvents(changes, readableBy(call.principal as Principal));
  const last = changes.at(-1);
  // An empty page means that a cursor was given, because every realm has a change.
  const cursor = last ? feedCursor('after', last) : after;
  const next = hasMore && cursor ? `${urlAfter(deps.baseUrl, realm, cursor)}&limit=${limit}` : null;
  return feedReply(call, events, { cursor, has_more: hasMore }, next);
}

/** Throws Fault `invalid_query` for a text that is no cursor of the realm. */
function cursorIn(parameter: string, text: string, realm: Uuid): FeedCursor {
  const cursor = parseFeedCursor(text, realm);
  if (cursor) return cursor;
  const rule = 'must be a cursor that the feed of this realm returned';
  throw new Fault('invalid_query', [{ field: parameter, rule }]);
}

/** The changes of all realms that the token may read, newest first, as far as they match. */
async function answerSearch(call: Call, deps: FeedDeps): Promise<Reply> {
  const query = readParameters(searchQuery, call.request.url);
  const { realm, after = '', limit = LIMITS.pageRecordsMax, ...conditions } = query;
  const principal = call.principal as Principal;
  const realms = realmsOf(principal.realms, realm && [realm]);
  const search = { ...conditions, realms, position: parseSearchCursor(after), limit };
  const { changes, next } = await searchChanges(deps, search, true);
  const withValues = async (change: SequencedChange) => ({
    ...(await deps.logReading.entryOf(change)),
    ...change,
  });
  const found = principal.scopes.has('history:read') ? await Promise.all(changes.map(withValues)) : changes;
  const events = await deps.writeEvents(found, readableBy(principal));
  const meta = { searched_to: next ? isoTimestamp(next.at) : null };
  const further = new URL(call.request.url).searchParams;
  if (next) further.set('after', searchCursor(next));
  return feedReply(call, events, meta, next ? `${deps.baseUrl}/v2/changes/search?${further}` : null);
}

/** The feed heads of the realms that a token may read, ordered by realm ID. */
async function answerHeads(call: Call, { feed, baseUrl }: FeedDeps): Promise<Reply> {
  const { after, limit = LIMITS.pageRecordsMax } = readParameters(headsQuery, call.request.url);
  const { realms } = call.principal as Principal;
  // The extra head shows that there is another page.
  const found = await feed.heads(after, limit + 1, realms === '*' ? undefined : [...realms]);
  const listed = found.slice(0, limit);
  const hasMore = found.length > limit;
  const next = hasMore ? `${baseUrl}/v2/changes?after=${listed.at(-1)?.realm}&limit=${limit}` : null;
  const items = listed.map((head) => JSON.stringify(describeHead({ ...head, baseUrl })));
  return feedReply(call, items, { has_more: hasMore }, next);
}

const HEAD: ProjectedMembers<RealmHead & { readonly baseUrl: string }> = {
  realm_id: [idSchema, ({ realm }) => realm],
  cursor: [cursor, (head) => feedCursor('after', head)],
  time: instant(({ at }) => at),
  links: { changes: [link, (head) => urlAfter(head.baseUrl, head.realm, feedCursor('after', head))] },
};
const describeHead = projector(HEAD);

/** The URL of the changes after a cursor. */
function urlAfter(baseUrl: string, realm: Uuid, cursor: string): string {
  return `${baseUrl}/v2/authentication-realms/${realm}/changes?after=${cursor}`;
}

function feedReply(call: Call, items: readonly string[], meta: object, next: string | null): Reply {
  const end = `"meta":${JSON.stringify(meta)},"links":${JSON.stringify({ next })}`;
  return recordReply(call, `{"data":[${items.join(',')}],${end}}`, { Vary: 'Accept' });
}

const EVENT = projectionSchema(eventMembers()).meta({
  id: 'Event',
  description:
    'A change (CloudEvents 1.0). Only `record`, `detail` and `personal` contain values of the record.',
});

/** A page of changes in the OpenAPI document. */
function eventContent({ baseUrl, examples }: DocumentContext, meta: z.ZodRawShape, values: object) {
  const example = projector(eventMembers())({ ...CHANGE, baseUrl, record: examples.record(user) });
  return pageContent(EVENT, example, meta, values);
}

/** A page of one item in the OpenAPI document. */
function pageContent(item: z.ZodType, example: unknown, meta: z.ZodRawShape, values: object) {
  const schema = z.strictObject({
    data: z.array(item).max(LIMITS.pageRecordsMax),
    meta: z.strictObject(meta),
    links: z.strictObject({ next: link.nullable() }),
  });
  return jsonContent(schema, { data: [example], meta: values, links: { next: null } });
}

function changesContent(context: DocumentContext) {
  const streamed = JSON.stringify(projector(eventMembers())({ ...CHANGE, baseUrl: context.baseUrl }));
  return {
    ...eventContent(context, { cursor, has_more: z.boolean() }, { cursor: CURSOR, has_more: false }),
    [STREAM_TYPE]: {
      schema: z.string(),
      example: `: alive\n\nid: ${CURSOR}\ndata: ${streamed}\n\nevent: end\ndata: {"reason":"token"}\n\n`,
    },
  };
}

const CACHING = { 'Cache-Control': HEADERS.cacheControl, Vary: HEADERS.vary };

const searchedTo = timestampSchema
  .nullable()
  .meta({ description: 'How far back the search has looked; null if it has looked at everything.' });

/** The change feed: the changes of a realm as pages or as a stream, the newest position of every realm, and the search. */
export const FEED_OPERATIONS: readonly Operation<FeedDeps>[] = [
  {
    name: 'list-changes',
    method: 'GET',
    path: '/v2/authentication-realms/:realm_id/changes',
    access: { scope: FEED_SCOPE },
    locates: 'key',
    handle: (deps) => (call) => answerChanges(call, deps),
    document: (context) => ({
      summary:
        'List the changes of a realm in order, from the start or after a cursor; `Accept: text/event-stream` streams new ones.',
      tag: 'changes',
      isExtension: true,
      path: z.object({ realm_id: idSchema.meta({ param: { example: exampleIdOf(realm) } }) }),
      query: changesQuery,
      ownHeaders: {
        'Last-Event-ID': parameter(
          cursor,
          'For a stream: the cursor to resume from; it takes precedence over `after`.',
          CURSOR,
        ),
      },
      success: {
        status: 200,
        description:
          'The next changes and the cursor to continue from. A stream sends the cursor of each change as `id`, and the reason when it ends.',
        headers: CACHING,
        content: changesContent(context),
      },
      faults: ['expired_cursor'],
    }),
  },
  {
    name: 'list-change-heads',
    method: 'GET',
    path: '/v2/changes',
    access: { scope: FEED_SCOPE },
    handle: (deps) => (call) => answerHeads(call, deps),
    document: ({ baseUrl }) => ({
      summary: 'Get the cursor after the newest change of each realm that the token may read.',
      tag: 'changes',
      isExtension: true,
      query: headsQuery,
      success: {
        status: 200,
        description: 'The realms, ordered by ID.',
        headers: CACHING,
        content: pageContent(
          projectionSchema(HEAD),
          describeHead({ ...CHANGE, baseUrl }),
          { has_more: z.boolean() },
          { has_more: false },
        ),
      },
    }),
  },
  {
    name: 'search-changes',
    method: 'GET',
    path: '/v2/changes/search',
    access: { scope: FEED_SCOPE },
    handle: (deps) => (call) => answerSearch(call, deps),
    document: (context) => ({
      summary: 'Search the changes of every realm that the token may read, newest first.',
      tag: 'changes',
      isExtension: true,
      description:
        `A request searches at most ${LIMITS.changesSearchedMax.toLocaleString('en')} changes: a page may have few or none of them and a ` +
        'next page. With the scope `history:read`, changes have the values before and after.',
      query: searchQuery,
      success: {
        status: 200,
        description: 'The changes that match.',
        headers: CACHING,
        content: eventContent(context, { searched_to: searchedTo }, { searched_to: null }),
      },
    }),
  },
];
