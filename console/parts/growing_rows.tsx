import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { AROUND, HEIGHT_PX, ROW_PX, useKeptFocus, useLeaps } from './drawn_rows.ts';

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
