import { Fault, type FieldError } from '../../domain/fault.ts';
import { parseUuid, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Resource } from '../../domain/resource.ts';
import { type FeedCursor, feedCursor, parseFeedCursor } from '../../events/feed/cursor.ts';
import {
  type FeedPage,
  type FeedPosition,
  readFeed,
  readFeedBefore,
  readUserFeedBefore,
} from '../../events/feed/read_feed.ts';
import type { WriteEvents } from '../../events/feed/write_events.ts';
import type { FeedStore, RealmHead } from '../../store/audit/feed.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import { asksFor } from '../pipeline/negotiation.ts';
import { type OperationDeps, recordReply } from '../pipeline/pipeline.ts';
import { isoTimestamp } from '../pipeline/present.ts';
import { expiredCursorReply, NOT_FOUND_REPLY, type Reply } from '../server/reply.ts';

/** The dependencies of the feed. */
export interface FeedDeps extends OperationDeps {
  readonly feed: FeedStore;
  readonly writeEvents: WriteEvents;
  readonly followChanges: FollowChanges;
}

/** Replies with a stream of the changes of a realm from a position on (Server-Sent Events). */
type FollowChanges = (call: Call, realm: Uuid, position: FeedPosition) => Reply;

export const FEED_SCOPE = 'changes:read';
export const STREAM_TYPE = 'text/event-stream';

/** Whether a token may read the records of a resource; events about them then carry their state. */
export function readableBy({ scopes }: Principal): (resource: Resource) => boolean {
  return ({ scope }) => scopes.has(`${scope}:read`);
}

/** Pages of changes after or before a cursor, or a stream of them. */
export function changes(deps: FeedDeps): CallHandler {
  return async (call) => {
    const realm = call.key?.[0] as Uuid;
    const query = readFeedQuery(call.request.url);
    const { after, before } = query;
    const isStream = acceptsStream(call.request);
    const isCombined = isStream || after !== undefined;
    if (before === undefined ? query.user !== undefined : isCombined)
      throw invalidQuery('before', 'cannot be combined with after or a stream; user_id requires it');
    if (before !== undefined)
      return changesReply(call, await pageBefore(deps, realm, before, query), query, deps);
    const resumed = isStream ? call.request.headers.get('last-event-id') : null;
    const place = positionAfter(realm, after, resumed);
    const page = await readFeed(deps.store, realm, place, query.limit);
    if (isStream && page.kind === 'page') return deps.followChanges(call, realm, place);
    return changesReply(call, page, query, deps);
  };
}

/** The position in the query, or after the last event of a resumed stream. */
function positionAfter(realm: Uuid, after: string | undefined, resumed: string | null): FeedPosition {
  if (resumed) return cursorIn('Last-Event-ID', resumed, realm);
  return after === undefined ? 'oldest' : cursorIn('after', after, realm);
}

/** The changes before a cursor, or the newest ones. */
function pageBefore(
  deps: FeedDeps,
  realm: Uuid,
  before: string,
  { user, limit }: FeedQuery,
): Promise<FeedPage> {
  const place = before === '' ? 'end' : cursorIn('before', before, realm);
  return user
    ? readUserFeedBefore(deps, { realm, id: user }, place, limit)
    : readFeedBefore(deps, realm, place, limit);
}

/** A page of changes and the cursor after its last one; the next page continues on the same side. */
async function changesReply(
  call: Call,
  page: FeedPage,
  { after, before, limit, user }: FeedQuery,
  { writeEvents, baseUrl }: FeedDeps,
): Promise<Reply> {
  const side = before === undefined ? 'after' : 'before';
  if (page.kind === 'absent') return NOT_FOUND_REPLY;
  if (page.kind === 'gone') return expiredCursorReply(page.oldest, side);
  const { changes, hasMore } = page;
  const events = await writeEvents(changes, readableBy(call.principal as Principal));
  const last = changes.at(-1);
  // An empty page means that a cursor was given, because every realm has a change.
  const cursor = last ? feedCursor('after', last) : (page.cursor ?? before ?? after);
  const edge = before === undefined ? last : changes[0];
  const further = `limit=${limit}${user ? `&user_id=${user}` : ''}`;
  const next =
    hasMore && edge ? `${urlAt(baseUrl, edge.realm, feedCursor(side, edge), side)}&${further}` : null;
  return feedReply(call, events, { cursor, has_more: hasMore }, next);
}

/** Throws Fault `invalid_query` for a text that is no cursor of the realm. */
function cursorIn(parameter: string, text: string, realm: Uuid): FeedCursor {
  const cursor = parseFeedCursor(text, realm);
  if (!cursor) throw invalidQuery(parameter, 'must be a cursor that the feed of this realm returned');
  return cursor;
}

function invalidQuery(parameter: string, rule: string): Fault {
  return new Fault('invalid_query', [{ field: parameter, rule }]);
}

/** HEAD is answered like a page: for a stream it would never end. */
function acceptsStream(request: Request): boolean {
  return request.method === 'GET' && asksFor(STREAM_TYPE, request);
}

/** The feed heads of the realms that a token may read, ordered by realm ID. */
export function heads({ feed, baseUrl }: FeedDeps): CallHandler {
  return async (call) => {
    const { after: text, limit } = readFeedQuery(call.request.url);
    const after = text === undefined ? undefined : parseUuid(text);
    if (text !== undefined && !after) throw invalidQuery('after', 'must be the ID of a realm');
    const { realms } = call.principal as Principal;
    // The extra head shows that there is another page.
    const found = await feed.heads(after, limit + 1, realms === '*' ? undefined : [...realms]);
    const listed = found.slice(0, limit);
    const hasMore = found.length > limit;
    const next = hasMore ? `${baseUrl}/v2/changes?after=${listed.at(-1)?.realm}&limit=${limit}` : null;
    return feedReply(
      call,
      listed.map((head) => headText(head, baseUrl)),
      { has_more: hasMore },
      next,
    );
  };
}

/** A feed head as it is answered. */
export function headText(head: RealmHead, baseUrl: string): string {
  const cursor = feedCursor('after', head);
  const links = { changes: urlAt(baseUrl, head.realm, cursor) };
  return JSON.stringify({ realm_id: head.realm, cursor, time: isoTimestamp(head.at), links });
}

/** The URL of the changes after or before a cursor. */
function urlAt(baseUrl: string, realm: Uuid, cursor: string, side: 'after' | 'before' = 'after'): string {
  return `${baseUrl}/v2/authentication-realms/${realm}/changes?${side}=${cursor}`;
}

function feedReply(call: Call, items: readonly string[], meta: object, next: string | null): Reply {
  const end = `"meta":${JSON.stringify(meta)},"links":${JSON.stringify({ next })}`;
  return recordReply(call, `{"data":[${items.join(',')}],${end}}`, { Vary: 'Accept' });
}

type FeedQuery = ReturnType<typeof readFeedQuery>;

/**
 * Reads `after`, `before`, `limit` and `user_id`, each at most once; other parameters are ignored. Throws
 * Fault `invalid_query`.
 */
function readFeedQuery(url: string) {
  const parameters = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '');
  const fieldErrors: FieldError[] = [];
  for (const name of ['after', 'before', 'limit', 'user_id']) {
    if (parameters.getAll(name).length > 1)
      fieldErrors.push({ field: name, rule: 'must be given at most once' });
  }
  const text = parameters.get('limit') ?? String(LIMITS.pageRecordsMax);
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > LIMITS.pageRecordsMax) {
    fieldErrors.push({ field: 'limit', rule: `must be a whole number from 1 to ${LIMITS.pageRecordsMax}` });
  }
  const named = parameters.get('user_id');
  const user = named === null ? undefined : parseUuid(named);
  if (named !== null && !user) fieldErrors.push({ field: 'user_id', rule: 'must be the ID of a user' });
  if (fieldErrors.length > 0) throw new Fault('invalid_query', fieldErrors);
  return {
    after: parameters.get('after') ?? undefined,
    /** The cursor to read back from; empty for the newest changes. */
    before: parameters.get('before') ?? undefined,
    limit,
    /** Only changes of this user. */
    user,
  };
}
