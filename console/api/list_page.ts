/** A page of a list, with the cursor of the next one. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** Undefined on the last page. */
  readonly next: string | undefined;
}

/** Reads the page after a cursor; `''` is the start. */
export type ReadPage<T> = (cursor: string, signal: AbortSignal) => Promise<ListPage<T>>;
