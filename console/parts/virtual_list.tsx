import type { ComponentChildren, RefObject } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ReadPage } from '../api/list_page.ts';
import { type Problem, toProblem } from '../api/problem.ts';
import { useRetryAfter } from '../api/use_fetch.ts';
import {
  HEIGHT_PX,
  OVERSCAN_ROWS,
  ROW_PX,
  scrolledTo,
  WINDOW_ROWS,
  WINDOW_START,
  windowAtEnd,
} from './list_window.ts';
import { Loading, ProblemNote } from './notices.tsx';
import { createPagedRows, type PagedRows } from './paged_rows.ts';

type List = RefObject<HTMLElement | null>;

/** Moves the focus to the list when the focused row is no longer rendered, so that keys keep scrolling it. */
function useFocusFallback(list: List): void {
  const isFocused = list.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (isFocused && document.activeElement === document.body) list.current?.focus({ preventScroll: true });
  });
}

/** Home and End jump to the ends of a list: smooth scrolling would stop short in a growing list. */
function useHomeEndKeys(list: List, jump: (element: HTMLElement, isHome: boolean) => void): void {
  useEffect(() => {
    const element = list.current;
    const onKeyDown = (event: KeyboardEvent) => {
      if (!element || !isHomeOrEnd(event) || element.scrollHeight <= element.clientHeight) return;
      event.preventDefault();
      element.focus({ preventScroll: true });
      jump(element, event.key === 'Home');
    };
    element?.addEventListener('keydown', onKeyDown);
    return () => element?.removeEventListener('keydown', onKeyDown);
  });
}

function isHomeOrEnd({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  return (key === 'Home' || key === 'End') && !(ctrlKey || metaKey || altKey || shiftKey);
}

interface VirtualListProps<T> {
  readonly label: string;
  /** A new function starts a new list. */
  readonly read: ReadPage<T>;
  readonly row: (item: T) => ComponentChildren;
  readonly empty: ComponentChildren;
  /** For rows without focusable content: the list itself is focusable. */
  readonly isStop?: boolean;
}

/** A list of any length: renders only visible rows, and reloads pages that have left memory. */
export function VirtualList<T>({ label, read, row, empty, isStop = false }: VirtualListProps<T>) {
  const element = useRef<HTMLDivElement>(null);
  const { rows, problem, fill } = useRows(read);
  const [view, setView] = useState(WINDOW_START);
  useEffect(() => {
    setView({ ...WINDOW_START, height: element.current?.clientHeight || HEIGHT_PX });
    if (element.current) element.current.scrollTop = 0;
  }, [read]);
  useLayoutEffect(() => {
    if (element.current) element.current.scrollTop = view.top;
  }, [view.base]);
  useFocusFallback(element);
  useHomeEndKeys(element, (list, isHome) => {
    const end = isHome ? WINDOW_START : windowAtEnd(rows.known, list.clientHeight);
    setView({ ...end, height: list.clientHeight });
    list.scrollTop = end.top;
  });
  const first = Math.max(view.base + Math.floor(view.top / ROW_PX) - OVERSCAN_ROWS, view.base);
  const last = Math.min(first + Math.ceil(view.height / ROW_PX) + 2 * OVERSCAN_ROWS, rows.known);
  useEffect(() => fill(first, last), [fill, first, last, rows.known]);
  const reload = useCallback(() => fill(first, last), [fill, first, last]);
  useRetryAfter(problem, reload);
  if (rows.isComplete && rows.known === 0) return <>{empty}</>;
  const rowCount = Math.min(rows.known - view.base, WINDOW_ROWS);
  const indexes = Array.from({ length: Math.max(last - first, 0) }, (_, index) => first + index);
  const onScroll = () => setView((before) => scrolledTo(element.current, before, rows.known));
  return (
    <>
      {rows.known === 0 && !problem && <Loading />}
      <div ref={element} class="long-list" tabIndex={isStop ? 0 : -1} onScroll={onScroll}>
        <ul aria-label={label} style={{ height: `${rowCount * ROW_PX}px` }}>
          {indexes.map((index) => {
            const item = rows.at(index);
            return (
              <li
                key={index}
                style={{ top: `${(index - view.base) * ROW_PX}px` }}
                aria-posinset={index + 1}
                aria-setsize={rows.isComplete ? rows.known : -1}
              >
                {item === undefined ? <span class="faint">…</span> : row(item)}
              </li>
            );
          })}
        </ul>
      </div>
      {problem && <ProblemNote problem={problem} reload={reload} />}
    </>
  );
}

interface Rows<T> {
  readonly rows: PagedRows<T>;
  readonly problem: Problem | undefined;
  readonly fill: (first: number, last: number) => void;
}

function useRows<T>(read: ReadPage<T>): Rows<T> {
  const rows = useMemo(() => createPagedRows(read), [read]);
  const [, draw] = useState(0);
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    setProblem(undefined);
    return () => rows.close();
  }, [rows]);
  const fill = useCallback(
    (first: number, last: number) => {
      const clearProblem = () => setProblem(undefined);
      rows.load(first, last).then(
        () => {
          clearProblem();
          draw((count) => count + 1);
        },
        (error: unknown) => {
          if (!(error instanceof DOMException)) setProblem(toProblem(error));
        },
      );
    },
    [rows],
  );
  return { rows, problem, fill };
}

interface LiveListProps<T> {
  readonly label: string;
  readonly items: readonly T[];
  /** A stable key of an item. */
  readonly keyOf: (item: T) => string | number;
  readonly row: (item: T) => ComponentChildren;
  /** Called near the end of the list. */
  readonly onEnd: () => void;
}

/** A virtual list that grows at the top while the visible rows stay in place. */
export function LiveList<T>({ label, items, keyOf, row, onEnd }: LiveListProps<T>) {
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: HEIGHT_PX });
  const first = Math.max(Math.floor(view.top / ROW_PX) - OVERSCAN_ROWS, 0);
  const last = Math.min(first + Math.ceil(view.height / ROW_PX) + 2 * OVERSCAN_ROWS, items.length);
  const isAtEnd = last >= items.length;
  useEffect(() => {
    if (isAtEnd) onEnd();
  }, [isAtEnd, items.length, onEnd]);
  const onScroll = () => {
    const list = element.current;
    if (list) setView({ top: list.scrollTop, height: list.clientHeight });
  };
  useFocusFallback(element);
  useHomeEndKeys(element, (list, isHome) => {
    list.scrollTop = isHome ? 0 : list.scrollHeight;
  });
  const newest = useRef<string | number | undefined>(undefined);
  useLayoutEffect(() => {
    const list = element.current;
    const known = newest.current;
    newest.current = items[0] && keyOf(items[0]);
    if (!list || known === undefined || list.scrollTop === 0) return;
    const added = items.findIndex((item) => keyOf(item) === known);
    if (added > 0) list.scrollTop += added * ROW_PX;
    onScroll();
  }, [items]);
  return (
    <div ref={element} class="long-list" tabIndex={-1} onScroll={onScroll}>
      <ul aria-label={label} style={{ height: `${items.length * ROW_PX}px` }}>
        {items.slice(first, last).map((item, index) => (
          <li
            key={keyOf(item)}
            style={{ top: `${(first + index) * ROW_PX}px` }}
            aria-posinset={first + index + 1}
            aria-setsize={items.length}
          >
            {row(item)}
          </li>
        ))}
      </ul>
    </div>
  );
}
