import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';

/** What lists that draw only the rows that are seen have in common: which rows those are, the focus, the keys. */

/** The same for every row: see `.long-list li` in lists.css. */
export const ROW_PX = 52;
/** Rows drawn above and below what is seen. */
export const AROUND = 12;
/** Of a list that is not measured yet. */
export const HEIGHT_PX = 800;

type List = RefObject<HTMLElement | null>;

/** Where the row that had the focus is drawn no more, its list has it: keys go on moving that. */
export function useKeptFocus(list: List): void {
  const isFocused = list.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (isFocused && document.activeElement === document.body) list.current?.focus({ preventScroll: true });
  });
}

/**
 * Home and End lead to the ends of a list at once. Browsers glide there, and do not turn round on the way where it grows
 * meanwhile.
 */
export function useLeaps(list: List, leap: (element: HTMLElement, isHome: boolean) => void): void {
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
