import type { ReadPage } from '../api/list_page.ts';

/** Pages in memory; of the others only the cursor. */
const LOADED_PAGES_MAX = 60;

/** The rows of a list that is read page by page. */
export interface PagedRows<T> {
  /** The number of rows read so far. */
  readonly known: number;
  readonly isComplete: boolean;
  /** Undefined for a row that is not in memory. */
  at(index: number): T | undefined;
  /** Loads missing pages of these rows, and the next page near the end. Throws Problem. */
  load(first: number, last: number): Promise<void>;
  close(): void;
}

/** Distance to the end at which the next page is loaded. */
const AHEAD = 60;

interface Page<T> {
  readonly cursor: string;
  readonly first: number;
  length: number;
  items: readonly T[] | undefined;
}

export function createPagedRows<T>(read: ReadPage<T>): PagedRows<T> {
  const pages: Page<T>[] = [{ cursor: '', first: 0, length: 0, items: undefined }];
  const controller = new AbortController();
  const reading = new Map<Page<T>, Promise<void>>();
  const filled = new Set<Page<T>>();
  let known = 0;
  let isComplete = false;

  function pageOf(index: number): Page<T> | undefined {
    let low = 0;
    let high = pages.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((pages[middle]?.first ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    return pages[low];
  }

  async function fill(page: Page<T>): Promise<void> {
    const { items, next } = await read(page.cursor, controller.signal);
    page.items = items;
    if (page === pages.at(-1)) {
      page.length = items.length;
      known = page.first + items.length;
      isComplete = next === undefined;
      if (next !== undefined) pages.push({ cursor: next, first: known, length: 0, items: undefined });
    }
    filled.add(page);
    if (filled.size <= LOADED_PAGES_MAX) return;
    const distance = (each: Page<T>) => Math.abs(each.first - page.first);
    const [furthest] = [...filled].sort((a, b) => distance(b) - distance(a));
    if (!furthest) return;
    furthest.items = undefined;
    filled.delete(furthest);
  }

  function readOnce(page: Page<T>): Promise<void> {
    const pending = reading.get(page) ?? fill(page).finally(() => reading.delete(page));
    reading.set(page, pending);
    return pending;
  }

  return {
    get known() {
      return known;
    },
    get isComplete() {
      return isComplete;
    },
    at(index) {
      const page = pageOf(index);
      return page?.items?.[index - page.first];
    },
    async load(first, last) {
      const missing = new Set<Page<T>>();
      for (const index of [first, Math.floor((first + last) / 2), Math.max(last - 1, first)]) {
        const page = pageOf(index);
        if (page && page.items === undefined && index < known) missing.add(page);
      }
      const end = pages.at(-1);
      if (!isComplete && end && last + AHEAD >= known) missing.add(end);
      await Promise.all([...missing].map(readOnce));
    },
    close: () => controller.abort(),
  };
}
