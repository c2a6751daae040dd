import { type Problem, toProblem } from '../../api/problem.ts';
import { type Observable, observable } from '../../observable.ts';
import { type Entry, entryOf, type FeedEvent, readChanges } from './entry.ts';
import { followChanges, type StreamState } from './follow_changes.ts';

/** The loaded changes of one realm. */
export interface FeedView {
  /** Newest first. */
  readonly entries: readonly Entry[];
  /** Number of changes held back while paused. */
  readonly waiting: number;
  readonly isPaused: boolean;
  readonly stream: StreamState;
  /** Whether the oldest change, or the maximum, is loaded. */
  readonly isWhole: boolean;
  readonly isReading: boolean;
  /** Error of loading older changes. */
  readonly problem: Problem | undefined;
  /** Whether changes were lost. */
  readonly hasGap: boolean;
}

export interface Feed {
  readonly view: Observable<FeedView>;
  pause(isPaused: boolean): void;
  /** Loads the previous page. */
  readOlder(): void;
  close(): void;
}

/** Maximum number of loaded changes. */
export const ENTRIES_MAX = 20_000;

const EMPTY: FeedView = {
  entries: [],
  waiting: 0,
  isPaused: false,
  stream: { kind: 'opening' },
  isWhole: false,
  isReading: false,
  problem: undefined,
  hasGap: false,
};

/** Loads the newest changes of a realm, then follows its stream. */
export function openFeed(realm: string): Feed {
  const controller = new AbortController();
  const { signal } = controller;
  const view = observable(EMPTY);
  let pending: readonly Entry[] = [];
  let older: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const change = (part: Partial<FeedView>) => view.set({ ...view.get(), ...part });

  /** Prepends new changes without duplicates, up to the maximum. */
  function prepend(newer: readonly Entry[]): void {
    const { entries } = view.get();
    const newest = entries[0]?.seq ?? 0;
    const all = [...newer.filter(({ seq }) => seq > newest), ...entries];
    change({ entries: all.slice(0, ENTRIES_MAX), waiting: 0, isWhole: isWholeWith(all.length) });
  }

  function release(): void {
    prepend(pending);
    pending = [];
  }

  function isWholeWith(count: number): boolean {
    return older === undefined || count >= ENTRIES_MAX;
  }

  function receive(events: readonly FeedEvent[]): void {
    pending = [...events.map(entryOf).reverse(), ...pending].slice(0, ENTRIES_MAX);
    if (view.get().isPaused) change({ waiting: pending.length });
    else release();
  }

  async function run(hasGap: boolean): Promise<void> {
    const { items, next, cursor } = await readChanges(realm, { before: '' }, signal);
    older = next;
    pending = [];
    change({ ...EMPTY, isPaused: view.get().isPaused, hasGap });
    prepend(items);
    const onState = (stream: StreamState) => change({ stream });
    await followChanges(realm, cursor, { onEvents: receive, onState, signal });
    return start(true);
  }

  /** Retries after the time that a busy service asks for. */
  async function start(hasGap = false): Promise<void> {
    try {
      await run(hasGap);
    } catch (error) {
      if (signal.aborted) return;
      const { message: reason, waitSeconds: seconds } = toProblem(error);
      if (seconds === undefined) return change({ stream: { kind: 'over', reason } });
      change({ stream: { kind: 'retrying', reason, seconds } });
      timer = setTimeout(() => void start(hasGap), seconds * 1_000);
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
      if (older === undefined || view.get().isReading || view.get().isWhole) return;
      change({ isReading: true, problem: undefined });
      readChanges(realm, { before: older }, signal).then(
        (page) => {
          older = page.next;
          const entries = [...view.get().entries, ...page.items];
          change({ entries, isReading: false, isWhole: isWholeWith(entries.length) });
        },
        (error: unknown) => {
          if (signal.aborted) return;
          const problem = toProblem(error);
          // Older changes are no longer in the feed.
          change({ isReading: false, ...(problem.kind === 'gone' ? { isWhole: true } : { problem }) });
        },
      );
    },
    close() {
      clearTimeout(timer);
      controller.abort();
    },
  };
}
