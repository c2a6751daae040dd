/** A page of a list, with the cursor of the next one. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** Undefined on the last page. */
  readonly next: string | undefined;
}

/** Reads the page after a cursor; `''` is the start. */
export type ReadPage<T> = (cursor: string, signal?: AbortSignal) => Promise<ListPage<T>>;

/** Reads page after page, from a cursor to the end of the list. */
export async function* pagesOf<T>(
  read: ReadPage<T>,
  signal?: AbortSignal,
  from = '',
): AsyncGenerator<ListPage<T>> {
  for (let cursor: string | undefined = from; cursor !== undefined; ) {
    const page: ListPage<T> = await read(cursor, signal);
    yield page;
    cursor = page.next;
  }
}

/** Concatenates pages, at most `pagesMax`. */
export async function readPages<T>(
  pages: AsyncIterable<ListPage<T>>,
  pagesMax = Number.POSITIVE_INFINITY,
): Promise<ListPage<T>> {
  const items: T[] = [];
  let count = 0;
  for await (const page of pages) {
    items.push(...page.items);
    count += 1;
    if (count >= pagesMax) return { items, next: page.next };
  }
  return { items, next: undefined };
}
