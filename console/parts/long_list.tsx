import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ListPage, ReadPage } from '../api/list_page.ts';
import { type Problem, toProblem } from '../api/problem.ts';
import { useRetryAfter } from '../api/use_fetch.ts';
import { returnToPlace, rowsToPlace } from './list_place.ts';
import { Loading, ProblemNote } from './notices.tsx';

interface LongListProps<T> {
  readonly label: string;
  readonly items: readonly T[];
  readonly row: (item: T) => ComponentChildren;
  /** A stable key, in a list that grows at its top. */
  readonly keyOf?: (item: T) => string;
  /** Reads the next rows; undefined at the end of the list. */
  readonly onMore: (() => void) | undefined;
}

/** A frame of rows with a button for the next ones, of which the first receives the focus. */
export function LongList<T>({ label, items, row, keyOf, onMore }: LongListProps<T>) {
  const list = useRef<HTMLUListElement>(null);
  /** The last row when further ones were asked for: rows can also come at the top. */
  const lastShown = useRef<T | undefined>(undefined);
  useLayoutEffect(() => returnToPlace(list.current), []);
  useEffect(() => {
    const index = lastShown.current === undefined ? -1 : items.indexOf(lastShown.current);
    const added = list.current?.children[index + 1];
    if (index < 0 || !(added instanceof HTMLElement)) return;
    lastShown.current = undefined;
    added.focus();
  }, [items]);
  const showMore = () => {
    lastShown.current = items.at(-1);
    onMore?.();
  };
  return (
    <div class="long-list" tabIndex={-1}>
      <ul ref={list} aria-label={label}>
        {items.map((item, index) => (
          <li key={keyOf?.(item) ?? index} tabIndex={-1}>
            {row(item)}
          </li>
        ))}
      </ul>
      {onMore && (
        <button type="button" class="text-button" onClick={showMore}>
          Show more
        </button>
      )}
    </div>
  );
}

interface PagedListProps<T> extends Pick<LongListProps<T>, 'label' | 'row'> {
  /** A new function starts a new list. */
  readonly read: ReadPage<T>;
  readonly empty: ComponentChildren;
}

/** A list that is read page by page. */
export function PagedList<T>({ read, empty, ...look }: PagedListProps<T>) {
  const [{ items, next }, setList] = useState<ListPage<T>>(UNREAD);
  const [problem, setProblem] = useState<Problem>();
  const running = useRef<AbortController | undefined>(undefined);
  const readAfter = useCallback(
    async (before: ListPage<T>, rows = 0) => {
      running.current?.abort();
      running.current = new AbortController();
      const { signal } = running.current;
      setProblem(undefined);
      try {
        let list = before;
        do {
          const page = await read(list.next ?? '', signal);
          list = { items: [...list.items, ...page.items], next: page.next };
        } while (list.next !== undefined && list.items.length < rows);
        if (!signal.aborted) setList(list);
      } catch (error) {
        if (!signal.aborted) setProblem(toProblem(error));
      }
    },
    [read],
  );
  useEffect(() => {
    setList(UNREAD);
    readAfter(UNREAD, rowsToPlace(look.label));
    return () => running.current?.abort();
  }, [readAfter]);
  const readOn = useCallback(() => void readAfter({ items, next }), [readAfter, items, next]);
  useRetryAfter(problem, readOn);
  if (items.length === 0 && next === undefined) return <>{empty}</>;
  return (
    <>
      {items.length > 0 ? (
        <LongList {...look} items={items} onMore={next === undefined ? undefined : readOn} />
      ) : (
        !problem && <Loading />
      )}
      {problem && <ProblemNote problem={problem} reload={readOn} />}
    </>
  );
}

/** A list of which nothing was read: the cursor `''` is its start. */
const UNREAD: ListPage<never> = { items: [], next: '' };
