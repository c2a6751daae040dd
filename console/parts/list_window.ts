/** Which rows of a very long list the page holds, and which of them are visible. */

/** The same for every row: see `.long-list li` in lists.css. */
export const ROW_PX = 52;
/** Rows drawn above and below what is seen. */
export const OVERSCAN_ROWS = 12;
/** Of a list that is not measured yet. */
export const HEIGHT_PX = 800;

/** Browsers draw no element that is higher than some millions of pixels: of a longer list a stretch stands in it. */
export const WINDOW_ROWS = 100_000;
/** How far the stretch goes on where its end is near. */
const WINDOW_STEP_ROWS = WINDOW_ROWS / 2;

/** What is seen: `top` and `height` in pixels, the top of the stretch being the row `base`. */
export interface WindowView {
  readonly base: number;
  readonly top: number;
  readonly height: number;
}

export const WINDOW_START: WindowView = { base: 0, top: 0, height: HEIGHT_PX };

/** What is seen at the end of so many rows: of the last stretch, its last rows. */
export function windowAtEnd(known: number, height: number): WindowView {
  const base = Math.ceil(Math.max(known - WINDOW_ROWS, 0) / WINDOW_STEP_ROWS) * WINDOW_STEP_ROWS;
  return { base, top: Math.max((known - base) * ROW_PX - height, 0), height };
}

interface Scrolled {
  readonly scrollTop: number;
  readonly clientHeight: number;
}

/**
 * What is seen after scrolling; the stretch moves on where one of its ends is near. The list is scrolled along once the
 * rows of the next stretch give it its height.
 */
export function scrolledTo(list: Scrolled | null, { base }: WindowView, known: number): WindowView {
  if (!list) return WINDOW_START;
  const at = base + list.scrollTop / ROW_PX;
  const isBelow = at - base > WINDOW_ROWS - WINDOW_STEP_ROWS / 2 && known > base + WINDOW_ROWS;
  const isAbove = base > 0 && at - base < WINDOW_STEP_ROWS / 2;
  const moved = isBelow ? WINDOW_STEP_ROWS : isAbove ? -WINDOW_STEP_ROWS : 0;
  return { base: base + moved, top: list.scrollTop - moved * ROW_PX, height: list.clientHeight };
}
