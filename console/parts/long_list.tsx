import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useAgain } from '../api/answers.ts';
import type { ReadPage } from '../api/pages.ts';
import { type Problem, problemOf } from '../api/problem.ts';
import { AROUND, HEIGHT_PX, ROW_PX, useKeptFocus, useLeaps } from './drawn_rows.ts';
import { ProblemNote, Waiting } from './notices.tsx';
import { type PagedRows, pagedRows } from './paged_rows.ts';
import { endOf, followed, START, STRETCH_ROWS } from './stretch.ts';

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
