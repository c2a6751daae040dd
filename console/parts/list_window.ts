/** Which rows of a very long list the page holds, and which of them are visible. */

/** The same for every row: see `.long-list li` in lists.css. */
export const ROW_PX = 52;
/** Rows drawn above and below what is seen. */
export const AROUND = 12;
/** Of a list that is not measured yet. */
export const HEIGHT_PX = 800;

/** Browsers draw no element that is higher than some millions of pixels: of a longer list a stretch stands in it. */
export const STRETCH_ROWS = 100_000;
/** How far the stretch goes on where its end is near. */
const STEP_ROWS = STRETCH_ROWS / 2;

/** What is seen: `top` and `height` in pixels, the top of the stretch being the row `base`. */
export interface View {
  readonly base: number;
  readonly top: number;
  readonly height: number;
}

export const START: View = { base: 0, top: 0, height: HEIGHT_PX };

/** What is seen at the end of so many rows: of the last stretch, its last rows. */
export function endOf(known: number, height: number): View {
  const base = Math.ceil(Math.max(known - STRETCH_ROWS, 0) / STEP_ROWS) * STEP_ROWS;
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
export function followed(list: Scrolled | null, { base }: View, known: number): View {
  if (!list) return START;
  const at = base + list.scrollTop / ROW_PX;
  const isBelow = at - base > STRETCH_ROWS - STEP_ROWS / 2 && known > base + STRETCH_ROWS;
  const isAbove = base > 0 && at - base < STEP_ROWS / 2;
  const moved = isBelow ? STEP_ROWS : isAbove ? -STEP_ROWS : 0;
  return { base: base + moved, top: list.scrollTop - moved * ROW_PX, height: list.clientHeight };
}
