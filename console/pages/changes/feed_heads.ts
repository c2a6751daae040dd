import { SCHEMA } from 'authrealm:schema';
import { callApi } from '../../api/call_api.ts';
import { pagesOf, type ReadPage, readPages } from '../../api/list_page.ts';
import { cursorOf, RESOURCES, recordPages } from '../../api/records.ts';
import { hasScope, type SessionState } from '../../session/session.ts';

/** The newest change of a realm. */
export interface FeedHead {
  readonly realm: string;
  /** The cursor after it. */
  readonly cursor: string;
  readonly at: string;
}

interface HeadsBody {
  readonly data: readonly { readonly realm_id: string; readonly cursor: string; readonly time: string }[];
  readonly links: { readonly next: string | null };
}

/** Pages of 100 realms: the realms whose changes are shown together, and those that can be chosen by name. */
const HEAD_PAGES_MAX = 10;

const headPages: ReadPage<FeedHead> = async (cursor, signal) => {
  const query = new URLSearchParams({
    limit: String(SCHEMA.limits.pageRecordsMax),
    ...(cursor === '' ? {} : { after: cursor }),
  });
  const path = `v2/changes?${query}`;
  const { data, links } = (await callApi<HeadsBody>({ path, signal, scope: 'changes:read' })).body;
  return {
    items: data.map(({ realm_id: realm, cursor: after, time: at }) => ({ realm, cursor: after, at })),
    next: cursorOf(links.next, 'after'),
  };
};

export interface FeedHeads {
  readonly heads: readonly FeedHead[];
  /** Whether there are more realms. */
  readonly hasMore: boolean;
}

/** The newest change of each realm that this session can read. */
export async function readFeedHeads(signal: AbortSignal): Promise<FeedHeads> {
  const { items, next } = await readPages(pagesOf(headPages, signal), HEAD_PAGES_MAX);
  return { heads: items, hasMore: next !== undefined };
}

/** A realm with changes. */
interface FeedRealm {
  readonly id: string;
  /** Undefined if it is deleted or not readable. */
  readonly name: string | undefined;
}

export interface FeedRealms extends FeedHeads {
  /** Most recently changed first. */
  readonly all: readonly FeedRealm[];
}

/** The realms whose changes this session can read. */
export async function readFeedRealms(state: SessionState, signal: AbortSignal): Promise<FeedRealms> {
  const [found, names] = await Promise.all([readFeedHeads(signal), readRealmNames(state, signal)]);
  const newest = found.heads.toSorted((one, other) => other.at.localeCompare(one.at));
  return { ...found, all: newest.map(({ realm: id }) => ({ id, name: names.get(id) })) };
}

async function readRealmNames(
  state: SessionState,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const { realms } = RESOURCES;
  if (!hasScope(state, `${realms.scope}:read`)) return new Map();
  const { items } = await readPages(pagesOf(recordPages(realms, []), signal), HEAD_PAGES_MAX);
  return new Map(items.map(({ id, name }) => [id, String(name)]));
}
