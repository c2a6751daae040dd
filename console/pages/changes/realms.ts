import { ask } from '../../api/caller.ts';
import { pagesOf } from '../../api/pages.ts';
import { RESOURCES } from '../../api/records.ts';
import { may, type SessionState } from '../../session/session.ts';

/** A realm whose changes can be followed. */
export interface FeedRealm {
  readonly id: string;
  /** Undefined where the session may not read it, or it is gone. */
  readonly name: string | undefined;
}

export interface Realms {
  /** The one that changed last comes first. */
  readonly all: readonly FeedRealm[];
  /** Whether there are more than are listed. */
  readonly hasMore: boolean;
}

interface Heads {
  readonly data: readonly { readonly realm_id: string; readonly time: string }[];
  readonly meta: { readonly has_more: boolean };
}

/** The realms that this session may follow. */
export async function readRealms(state: SessionState, signal: AbortSignal): Promise<Realms> {
  const [heads, names] = await Promise.all([
    ask<Heads>({ path: 'v2/changes', signal, scope: 'changes:read' }),
    namesOf(state, signal),
  ]);
  const { data, meta } = heads.body;
  const newest = [...data].sort((left, right) => right.time.localeCompare(left.time));
  return {
    all: newest.map(({ realm_id: id }) => ({ id, name: names.get(id) })),
    hasMore: meta.has_more,
  };
}

/** As many names as one page holds: without them realms are called by their IDs. */
async function namesOf(state: SessionState, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { realms } = RESOURCES;
  if (!may(state, `${realms.scope}:read`)) return new Map();
  const { items } = await pagesOf(realms, [])('', signal);
  return new Map(items.map(({ id, name }) => [id, String(name)]));
}
