import type { ComponentChildren, RefObject } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ReadPage } from '../api/list_page.ts';
import { type Problem, problemOf } from '../api/problem.ts';
import { useAgain } from '../api/use_fetch.ts';
import { AROUND, endOf, followed, HEIGHT_PX, ROW_PX, START, STRETCH_ROWS } from './list_window.ts';
import { ProblemNote, Waiting } from './notices.tsx';
import { type PagedRows, pagedRows } from './paged_rows.ts';

type List = RefObject<HTMLElement | null>;

/** Where the row that had the focus is drawn no more, its list has it: keys go on moving that. */
function useKeptFocus(list: List): void {
  const isFocused = list.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (isFocused && document.activeElement === document.body) list.current?.focus({ preventScroll: true });
  });
}

/**
 * Home and End lead to the ends of a list at once. Browsers glide there, and do not turn round on the way where it grows
 * meanwhile.
 */
function useLeaps(list: List, leap: (element: HTMLElement, isHome: boolean) => void): void {
  useEffect(() => {
    const element = list.current;
    const hear = (event: KeyboardEvent) => {
      if (!element || !isLeap(event) || element.scrollHeight <= element.clientHeight) return;
      event.preventDefault();
      element.focus({ preventScroll: true });
      leap(element, event.key === 'Home');
    };
    element?.addEventListener('keydown', hear);
    return () => element?.removeEventListener('keydown', hear);
  });
}

function isLeap({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  return (key === 'Home' || key === 'End') && !(ctrlKey || metaKey || altKey || shiftKey);
}

interface LongListProps<T> {
  readonly label: string;
  /** A new function begins a new list. */
  readonly read: ReadPage<T>;
  readonly row: (item: T) => ComponentChildren;
  readonly empty: ComponentChildren;
  /** Its rows hold nothing that a keyboard stops at: then the list itself is such a place. */
  readonly isStop?: boolean;
}

/**
 * A list of any length: only rows that are seen are drawn, and what was read long ago is read again when it is seen
 * again.
 */
export function LongList<T>({ label, read, row, empty, isStop = false }: LongListProps<T>) {
  const element = useRef<HTMLDivElement>(null);
  const { rows, problem, fill } = useRows(read);
  const [view, setView] = useState(START);
  useEffect(() => {
    setView({ ...START, height: element.current?.clientHeight || HEIGHT_PX });
    if (element.current) element.current.scrollTop = 0;
  }, [read]);
  useLayoutEffect(() => {
    if (element.current) element.current.scrollTop = view.top;
  }, [view.base]);
  useKeptFocus(element);
  useLeaps(element, (list, isHome) => {
    const end = isHome ? START : endOf(rows.known, list.clientHeight);
    setView({ ...end, height: list.clientHeight });
    list.scrollTop = end.top;
  });
  const first = Math.max(view.base + Math.floor(view.top / ROW_PX) - AROUND, view.base);
  const last = Math.min(first + Math.ceil(view.height / ROW_PX) + 2 * AROUND, rows.known);
  useEffect(() => fill(first, last), [fill, first, last, rows.known]);
  const again = useCallback(() => fill(first, last), [fill, first, last]);
  useAgain(problem, again);
  if (rows.isOver && rows.known === 0) return <>{empty}</>;
  const shown = Math.min(rows.known - view.base, STRETCH_ROWS);
  const indexes = Array.from({ length: Math.max(last - first, 0) }, (_, index) => first + index);
  const follow = () => setView((before) => followed(element.current, before, rows.known));
  return (
    <>
      {rows.known === 0 && !problem && <Waiting />}
      <div ref={element} class="long-list" tabIndex={isStop ? 0 : -1} onScroll={follow}>
        <ul aria-label={label} style={{ height: `${shown * ROW_PX}px` }}>
          {indexes.map((index) => {
            const item = rows.at(index);
            return (
              <li
                key={index}
                style={{ top: `${(index - view.base) * ROW_PX}px` }}
                aria-posinset={index + 1}
                aria-setsize={rows.isOver ? rows.known : -1}
              >
                {item === undefined ? <span class="faint">…</span> : row(item)}
              </li>
            );
          })}
        </ul>
      </div>
      {problem && <ProblemNote problem={problem} again={again} />}
    </>
  );
}

interface Rows<T> {
  readonly rows: PagedRows<T>;
  readonly problem: Problem | undefined;
  readonly fill: (first: number, last: number) => void;
}

function useRows<T>(read: ReadPage<T>): Rows<T> {
  const rows = useMemo(() => pagedRows(read), [read]);
  const [, draw] = useState(0);
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    setProblem(undefined);
    return () => rows.close();
  }, [rows]);
  const fill = useCallback(
    (first: number, last: number) => {
      const isNow = () => setProblem(undefined);
      rows.want(first, last).then(
        () => {
          isNow();
          draw((count) => count + 1);
        },
        (error: unknown) => {
          if (!(error instanceof DOMException)) setProblem(problemOf(error));
        },
      );
    },
    [rows],
  );
  return { rows, problem, fill };
}

interface GrowingRowsProps<T> {
  readonly label: string;
  readonly items: readonly T[];
  /** The same for the same item, wherever it has come to. */
  readonly keyOf: (item: T) => string | number;
  readonly row: (item: T) => ComponentChildren;
  /** The last rows come near: more may be read. */
  readonly onEnd: () => void;
}

/** A list that grows at its top while it is read: what is seen stays where it is, and only that is drawn. */
export function GrowingRows<T>({ label, items, keyOf, row, onEnd }: GrowingRowsProps<T>) {
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: HEIGHT_PX });
  const first = Math.max(Math.floor(view.top / ROW_PX) - AROUND, 0);
  const last = Math.min(first + Math.ceil(view.height / ROW_PX) + 2 * AROUND, items.length);
  const isAtEnd = last >= items.length;
  useEffect(() => {
    if (isAtEnd) onEnd();
  }, [isAtEnd, items.length, onEnd]);
  const follow = () => {
    const list = element.current;
    if (list) setView({ top: list.scrollTop, height: list.clientHeight });
  };
  useKeptFocus(element);
  useLeaps(element, (list, isHome) => {
    list.scrollTop = isHome ? 0 : list.scrollHeight;
  });
  const newest = useRef<string | number | undefined>(undefined);
  useLayoutEffect(() => {
    const list = element.current;
    const known = newest.current;
    newest.current = items[0] && keyOf(items[0]);
    if (!list || known === undefined || list.scrollTop === 0) return;
    const came = items.findIndex((item) => keyOf(item) === known);
    if (came > 0) list.scrollTop += came * ROW_PX;
    follow();
  }, [items]);
  return (
    <div ref={element} class="long-list" tabIndex={-1} onScroll={follow}>
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
