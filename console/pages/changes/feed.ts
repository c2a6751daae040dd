import { callApi } from '../../api/call_api.ts';
import { type Problem, toProblem } from '../../api/problem.ts';
import { type Observable, observable } from '../../observable.ts';
import { type Entry, entryOf, type FeedEvent } from './entry.ts';
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

/** A page of changes, newest first. */
interface Page {
  readonly entries: readonly Entry[];
  /** Cursor after the newest. */
  readonly cursor: string;
  /** Cursor before the oldest; undefined at the end. */
  readonly older: string | undefined;
}

interface ChangesResponse {
  readonly data: readonly FeedEvent[];
  readonly meta: { readonly cursor: string };
  readonly links: { readonly next: string | null };
}

/** `''` starts at the newest. */
async function readBefore(realm: string, cursor: string, signal: AbortSignal): Promise<Page> {
  const query = new URLSearchParams({ before: cursor });
  const path = `v2/authentication-realms/${encodeURIComponent(realm)}/changes?${query}`;
  const { body } = await callApi<ChangesResponse>({ path, signal, scope: 'changes:read' });
  return {
    entries: body.data.map(entryOf).reverse(),
    cursor: body.meta.cursor,
    older: cursorOf(body.links.next),
  };
}

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
    const { entries, cursor, older: before } = await readBefore(realm, '', signal);
    older = before;
    pending = [];
    change({ ...EMPTY, isPaused: view.get().isPaused, hasGap });
    prepend(entries);
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
      readBefore(realm, older, signal).then(
        (page) => {
          older = page.older;
          const entries = [...view.get().entries, ...page.entries];
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

/** Only the cursor of a link: a response must not decide where the token is sent. */
function cursorOf(link: string | null): string | undefined {
  if (link === null) return undefined;
  return new URL(link, location.href).searchParams.get('before') ?? undefined;
}
