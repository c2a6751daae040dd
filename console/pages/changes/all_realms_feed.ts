import { Problem, toProblem } from '../../api/problem.ts';
import { type Entry, readChanges, readChangesAfter } from './entry.ts';
import { type Feed, type FeedSource, openFeedOf, type Restart } from './feed.ts';
import { readFeedHeads } from './feed_heads.ts';
import type { StreamState } from './follow_changes.ts';
import { pause } from './pause.ts';

/**
 * The changes of all realms in one list. A feed has an order within its realm only, so the page merges the feeds by time: it reads
 * a realm when its newest change is the next one of the list, and asks every few seconds which realms have changed. That takes no
 * stream, of which a session has four.
 */
export function openAllRealmsFeed(): Feed {
  return openFeedOf(openSource);
}

/** Time between two polls, for each hundred realms. */
const POLL_MS = 2_000;
const REALMS_PER_INTERVAL = 100;
const RETRY_SECONDS_MAX = 15;
/** Changes in one step of the list. */
const STEP = 100;
/** Realms read for one step: the list is shorter if they do not fill it. */
const READS_MAX = 30;
/** Realms read at once. */
const READS_AT_ONCE = 5;

interface RealmFeed {
  readonly realm: string;
  /** The cursor after the newest change that is known. */
  cursor: string;
  /** The time of the newest change that is not in `read`: no unread change is newer. */
  at: string;
  /** The cursor before the oldest change that was read; `''` if none was, undefined at the end. */
  older: string | undefined;
  /** Read, but not in the list yet; newest first. */
  read: readonly Entry[];
}

type RealmFeeds = Map<string, RealmFeed>;

function openSource(signal: AbortSignal): FeedSource {
  const feeds = new Map<string, RealmFeed>();
  return {
    async readOlder() {
      if (feeds.size === 0) {
        for (const head of (await readFeedHeads(signal)).heads) {
          feeds.set(head.realm, { ...head, older: '', read: [] });
        }
      }
      return readStep(feeds, signal);
    },
    async follow(onEntries, onState) {
      onState({ kind: 'live' });
      let failures = 0;
      for (;;) {
        await pause(POLL_MS * Math.ceil((feeds.size + 1) / REALMS_PER_INTERVAL), signal);
        const found = await poll(feeds, signal);
        if (typeof found === 'string') return found;
        if (found instanceof Problem) await retryAfter(found, failures++, onState, signal);
        else {
          if (failures > 0) onState({ kind: 'live' });
          failures = 0;
          onEntries(found);
        }
      }
    },
  };
}

/** The changes since the last poll, newest first, or why there are none. */
async function poll(feeds: RealmFeeds, signal: AbortSignal): Promise<readonly Entry[] | Problem | Restart> {
  try {
    return await readNewer(feeds, signal);
  } catch (error) {
    signal.throwIfAborted();
    const problem = toProblem(error);
    return problem.kind === 'gone' ? problem.kind : problem;
  }
}

/** The next changes of the list. */
async function readStep(feeds: RealmFeeds, signal: AbortSignal): ReturnType<FeedSource['readOlder']> {
  const items: Entry[] = [];
  for (let reads = 0; items.length < STEP; ) {
    const [next, ...others] = nextFeeds(feeds);
    if (!next) break;
    const [entry, ...rest] = next.read;
    if (entry) {
      items.push(entry);
      next.read = rest;
      next.at = entry.at;
      continue;
    }
    if (reads >= READS_MAX) break;
    const unread = [next, ...others].filter(({ read }) => read.length === 0).slice(0, READS_AT_ONCE);
    reads += unread.length;
    await Promise.all(unread.map((feed) => readBack(feed, signal)));
  }
  return { items, hasMore: nextFeeds(feeds).length > 0 };
}

/** The feeds with further changes: the first one has the next change of the list, read or still to be read. */
function nextFeeds(feeds: RealmFeeds): readonly RealmFeed[] {
  return [...feeds.values()]
    .filter(({ read, older }) => read.length > 0 || older !== undefined)
    .sort((one, other) => timeOf(other).localeCompare(timeOf(one)));
}

function timeOf({ read, at }: RealmFeed): string {
  return read[0]?.at ?? at;
}

/** Reads the previous page of a realm. A realm that is gone, or whose older changes are, ends. */
async function readBack(feed: RealmFeed, signal: AbortSignal): Promise<void> {
  try {
    const page = await readChanges(feed.realm, { before: feed.older ?? '' }, signal);
    feed.older = page.next;
    feed.read = page.items;
  } catch (error) {
    const { kind } = toProblem(error);
    if (signal.aborted || (kind !== 'gone' && kind !== 'absent')) throw error;
    feed.older = undefined;
  }
}

/** A request that fails changes no feed: the next poll reads the same changes. */
async function readNewer(feeds: RealmFeeds, signal: AbortSignal): Promise<readonly Entry[] | 'too_many'> {
  const items: Entry[] = [];
  const read: { readonly feed: RealmFeed; readonly cursor: string }[] = [];
  for (const head of (await readFeedHeads(signal)).heads) {
    const feed = feeds.get(head.realm);
    if (feed?.cursor === head.cursor) continue;
    if (feed) {
      const newer = await readChangesAfter(head.realm, feed.cursor, signal);
      if (newer.isCut) return 'too_many';
      read.push({ feed, cursor: newer.cursor });
      items.push(...newer.items);
    } else {
      const page = await readChanges(head.realm, { before: '' }, signal);
      read.push({ feed: { ...head, older: page.next, read: [] }, cursor: page.cursor });
      items.push(...page.items);
    }
  }
  for (const { feed, cursor } of read) {
    feed.cursor = cursor;
    feeds.set(feed.realm, feed);
  }
  return items.toSorted((one, other) => other.at.localeCompare(one.at));
}

/** Waits as long as a problem needs: for ever, if a retry is no remedy. */
async function retryAfter(
  { kind, message: reason, waitSeconds }: Problem,
  failures: number,
  onState: (state: StreamState) => void,
  signal: AbortSignal,
): Promise<void> {
  if (waitSeconds === undefined && kind !== 'broken') {
    onState({ kind: 'over', reason });
    return pause(FOREVER_MS, signal);
  }
  const seconds = Math.min(Math.max(waitSeconds ?? 0, 2 ** failures), RETRY_SECONDS_MAX);
  onState({ kind: 'retrying', reason, seconds });
  await pause(seconds * 1_000, signal);
}

/** The longest time of a timer. */
const FOREVER_MS = 2 ** 31 - 1;
