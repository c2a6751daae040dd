import { type Problem, toProblem } from '../../api/problem.ts';
import { observable } from '../../observable.ts';
import { type Conditions, type Entry, searchChanges } from './entry.ts';

/** The changes that were found so far. */
export interface ListView {
  /** Newest first. */
  readonly entries: readonly Entry[];
  /** The cursor of older changes; undefined if there are none. */
  readonly next?: string | undefined;
  readonly searchedTo?: string | null;
  readonly isReading?: boolean;
  readonly problem?: Problem | undefined;
}

export type ChangeList = ReturnType<typeof openChangeList>;

const POLL_MS = 5_000;
/** A change may be committed so long after its time. */
const LATE_MS = 60_000;

/** Searches changes, and asks for new ones every five seconds, until it is closed. */
export function openChangeList(conditions: Conditions) {
  const controller = new AbortController();
  const { signal } = controller;
  const view = observable<ListView>({ entries: [], next: '' });
  let readAt = Number.NaN;
  const change = (part: Partial<ListView>) => view.set({ ...view.get(), ...part });

  /** Reads a page and adds its changes. `known`: how many of them were in the list. */
  async function read(after: string, from = conditions.from ?? '') {
    const page = await searchChanges({ ...conditions, from }, after, signal);
    const { entries } = view.get();
    const all = new Map([...entries, ...page.items].map((each) => [each.key, each]));
    change({ entries: [...all.values()].sort((one, other) => other.at.localeCompare(one.at)) });
    return { ...page, known: entries.length + page.items.length - all.size };
  }

  async function show(search: () => Promise<void>): Promise<void> {
    try {
      await search();
      change({ problem: undefined });
    } catch (error) {
      if (!signal.aborted) change({ problem: toProblem(error) });
    }
  }

  async function readOlder(): Promise<void> {
    const { next, isReading } = view.get();
    if (isReading || next === undefined) return;
    change({ isReading: true });
    await show(async () => {
      const page = await read(next);
      if (next === '') readAt = page.at;
      change({ next: page.next, searchedTo: page.searchedTo });
    });
    change({ isReading: false });
  }

  /** Reads the changes since the time before. If all of a page are new, and there are more, the list starts over. */
  async function readNewer(): Promise<void> {
    const since = new Date(readAt - LATE_MS).toISOString();
    const from = since > (conditions.from ?? '') ? since : conditions.from;
    const { at, items, known, next } = await read('', from);
    if (next === undefined || known > 0) readAt = at;
    else if (items.length > 0) {
      change({ entries: [], next: '' });
      await readOlder();
    }
  }

  async function poll(): Promise<void> {
    if (view.get().next !== '') await show(readNewer);
    if (!signal.aborted && !isFinal(view.get().problem)) timer = setTimeout(poll, POLL_MS);
  }

  void readOlder();
  let timer = setTimeout(poll, POLL_MS);
  const close = () => {
    clearTimeout(timer);
    controller.abort();
  };
  return {
    view,
    close,
    readOlder: () => void readOlder(),
    retry: () => void (view.get().next === '' ? readOlder() : show(readNewer)),
  };
}

/** Whether a repetition has the same result. */
export function isFinal(problem: Problem | undefined): boolean {
  return problem !== undefined && problem.waitSeconds === undefined && problem.kind !== 'broken';
}
