/** Which rows of a very long list are in the document, and which of them are visible. */

/** Height of a row; see `.long-list li` in lists.css. */
export const ROW_PX = 52;
/** Rows rendered above and below the visible ones. */
export const OVERSCAN_ROWS = 12;
/** Height before the first measurement. */
export const HEIGHT_PX = 800;

/**
 * Browsers limit the height of an element to some millions of pixels: the document holds a window of a
 * longer list.
 */
export const WINDOW_ROWS = 100_000;
/** How far the window moves when its end is near. */
const WINDOW_STEP_ROWS = WINDOW_ROWS / 2;

/** The visible part: `top` and `height` in pixels, relative to the row `base` at the top of the window. */
export interface WindowView {
  readonly base: number;
  readonly top: number;
  readonly height: number;
}

export const WINDOW_START: WindowView = { base: 0, top: 0, height: HEIGHT_PX };

/** The view of the last rows. */
export function windowAtEnd(known: number, height: number): WindowView {
  const base = Math.ceil(Math.max(known - WINDOW_ROWS, 0) / WINDOW_STEP_ROWS) * WINDOW_STEP_ROWS;
  return { base, top: Math.max((known - base) * ROW_PX - height, 0), height };
}

interface Scrolled {
  readonly scrollTop: number;
  readonly clientHeight: number;
}

/**
 * The view after scrolling. The window moves when one of its ends is near; the list then scrolls along once
 * the new window has its height.
 */
export function scrolledTo(list: Scrolled | null, { base }: WindowView, known: number): WindowView {
  if (!list) return WINDOW_START;
  const at = base + list.scrollTop / ROW_PX;
  const isBelow = at - base > WINDOW_ROWS - WINDOW_STEP_ROWS / 2 && known > base + WINDOW_ROWS;
  const isAbove = base > 0 && at - base < WINDOW_STEP_ROWS / 2;
  const moved = isBelow ? WINDOW_STEP_ROWS : isAbove ? -WINDOW_STEP_ROWS : 0;
  return { base: base + moved, top: list.scrollTop - moved * ROW_PX, height: list.clientHeight };
}
