/** A part of a long list, and what the next part is asked for with. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** Undefined where the list is over. */
  readonly next: string | undefined;
}

/** Returns the part behind a cursor; `''` begins. */
export type ReadPage<T> = (cursor: string, signal: AbortSignal) => Promise<ListPage<T>>;
