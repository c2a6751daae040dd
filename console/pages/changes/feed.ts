import { type Problem, toProblem } from '../../api/problem.ts';
import { type Observable, observable } from '../../observable.ts';
import { type Entry, entryKey, entryOf, type FeedEvent, readChanges } from './entry.ts';
import { followChanges, type StreamState } from './follow_changes.ts';

/** The loaded changes of one realm, or of all. */
export interface FeedView {
  /** Newest first. */
  readonly entries: readonly Entry[];
  /** Number of changes held back while paused. */
  readonly waiting: number;
  readonly isPaused: boolean;
  readonly stream: StreamState;
  /** Whether the oldest change, or the maximum, is loaded. */
  readonly isWhole: boolean;
  /** Whether a page of the source is being loaded: only one at a time, because each starts where the previous one ended. */
  readonly isReading: boolean;
  /** Error of loading older changes. */
  readonly problem: Problem | undefined;
  /** Why the list started over; undefined if it did not. */
  readonly restart: Restart | undefined;
}

/** Why a source starts again: its position is no longer in the feed, or there are too many newer changes to read. */
export type Restart = 'gone' | 'too_many';

export interface Feed {
  readonly view: Observable<FeedView>;
  pause(isPaused: boolean): void;
  /** Loads the previous page. */
  readOlder(): void;
  close(): void;
}

/** Where the changes of a feed come from. */
export interface FeedSource {
  /** The previous page, newest first; `hasMore` says whether there are older ones. */
  readonly readOlder: () => Promise<{ readonly items: readonly Entry[]; readonly hasMore: boolean }>;
  /** Delivers new changes, newest first, until the feed closes. Returns why the source starts again. */
  readonly follow: (
    onEntries: (newer: readonly Entry[]) => void,
    onState: (state: StreamState) => void,
  ) => Promise<Restart>;
}

/** Maximum number of loaded changes. */
export const ENTRIES_MAX = 20_000;

const EMPTY: FeedView = {
  entries: [],
  waiting: 0,
  isPaused: false,
  stream: { kind: 'opening' },
  isWhole: false,
  isReading: true,
  problem: undefined,
  restart: undefined,
};

/** The newest changes of a realm, then its stream. */
export function openFeed(realm: string): Feed {
  return openFeedOf((signal) => {
    let older: string | undefined = '';
    let cursor = '';
    return {
      async readOlder() {
        const page = await readChanges(realm, { before: older ?? '' }, signal);
        if (older === '') cursor = page.cursor;
        older = page.next;
        return { items: page.items, hasMore: older !== undefined };
      },
      async follow(onEntries, onState) {
        const onEvents = (events: readonly FeedEvent[]) => onEntries(events.map(entryOf).reverse());
        return followChanges(realm, cursor, { onEvents, onState, signal });
      },
    };
  });
}

/** Loads the newest changes of a source, then follows it. A page that arrives after the list has started over is ignored. */
export function openFeedOf(openSource: (signal: AbortSignal) => FeedSource): Feed {
  const controller = new AbortController();
  const { signal } = controller;
  const view = observable(EMPTY);
  let source = openSource(signal);
  let pending: readonly Entry[] = [];
  let fresh = newOnly();
  let hasOlder = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const change = (part: Partial<FeedView>) => view.set({ ...view.get(), ...part });
  const isWholeWith = (count: number) => !hasOlder || count >= ENTRIES_MAX;

  function release(): void {
    const all = [...fresh(pending), ...view.get().entries];
    pending = [];
    change({ entries: all.slice(0, ENTRIES_MAX), waiting: 0, isWhole: isWholeWith(all.length) });
  }

  function receive(newer: readonly Entry[]): void {
    if (newer.length === 0) return;
    pending = [...newer, ...pending].slice(0, ENTRIES_MAX);
    if (view.get().isPaused) change({ waiting: pending.length });
    else release();
  }

  async function append(from: FeedSource): Promise<void> {
    const { items, hasMore } = await from.readOlder();
    if (source !== from) return;
    hasOlder = hasMore;
    const entries = [...view.get().entries, ...fresh(items)];
    change({ entries, isReading: false, isWhole: isWholeWith(entries.length) });
  }

  async function run(restart: Restart | undefined): Promise<void> {
    change({ isReading: true });
    source = openSource(signal);
    const { items, hasMore } = await source.readOlder();
    hasOlder = hasMore;
    pending = [];
    fresh = newOnly();
    const [entries, { isPaused }] = [fresh(items), view.get()];
    change({ ...EMPTY, isPaused, restart, entries, isReading: false, isWhole: isWholeWith(entries.length) });
    return start(await source.follow(receive, (stream) => change({ stream })));
  }

  /** Retries after the time that a busy service asks for. */
  async function start(restart?: Restart): Promise<void> {
    try {
      await run(restart);
    } catch (error) {
      if (signal.aborted) return;
      const { message: reason, waitSeconds: seconds } = toProblem(error);
      if (seconds === undefined) return change({ stream: { kind: 'over', reason } });
      change({ stream: { kind: 'retrying', reason, seconds } });
      timer = setTimeout(() => void start(restart), seconds * 1_000);
    }
  }

  void start();
  return {
    view,
    pause(isPaused) {
      change({ isPaused });
      if (!isPaused) release();
    },
    readOlder() {
      if (!hasOlder || view.get().isReading || view.get().isWhole) return;
      change({ isReading: true, problem: undefined });
      const from = source;
      append(from).catch((error: unknown) => {
        if (signal.aborted || source !== from) return;
        const problem = toProblem(error);
        // Older changes are no longer in the feed.
        change({ isReading: false, ...(problem.kind === 'gone' ? { isWhole: true } : { problem }) });
      });
    },
    close() {
      clearTimeout(timer);
      controller.abort();
    },
  };
}

/** Filters the changes that are not in the list yet. */
function newOnly(): (entries: readonly Entry[]) => readonly Entry[] {
  const known = new Set<string>();
  return (entries) =>
    entries.filter((entry) => {
      const key = entryKey(entry);
      return !known.has(key) && known.add(key);
    });
}
