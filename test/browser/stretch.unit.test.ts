import { expect, test } from 'bun:test';
import {
  ROW_PX,
  scrolledTo,
  WINDOW_ROWS,
  WINDOW_START,
  type WindowView,
  windowAtEnd,
} from '../../console/parts/list_window.ts';

/** The scroll window of a list that is longer than a browser can render. */

const ALL = 1_000_000;
const HEIGHT = 628;

/** The first visible row. */
const rowAt = ({ base, top }: WindowView) => base + top / ROW_PX;

/** Scrolls by a number of rows, as far as the rendered window allows, then moves the window. */
function scrolled(view: WindowView, rows: number, all = ALL): WindowView {
  const reached = ({ base }: WindowView, top: number) =>
    Math.min(Math.max(top, 0), Math.min(all - base, WINDOW_ROWS) * ROW_PX - HEIGHT);
  const element = {
    clientHeight: HEIGHT,
    top: reached(view, view.top + rows * ROW_PX),
    get scrollTop() {
      return this.top;
    },
    // A browser cannot scroll beyond the rendered rows.
    set scrollTop(top: number) {
      this.top = reached(view, top);
    },
  };
  const next = scrolledTo(element, view, all);
  return { ...next, top: reached(next, next.top) };
}

test('a long list shows its last row at once when it is scrolled to the end', () => {
  const end = windowAtEnd(ALL, HEIGHT);
  expect(rowAt(end) + HEIGHT / ROW_PX).toBe(ALL);
  expect(ALL - end.base).toBeLessThanOrEqual(WINDOW_ROWS);
  expect(scrolled(end, 1)).toEqual(end);
});

test.each([0, 1, 12, 99_999, 100_000, 100_001, 149_999, 150_000, 250_000])(
  'a list of %i rows shows its last row when it is scrolled to the end',
  (known) => {
    const end = windowAtEnd(known, HEIGHT);
    const shown = Math.min(known - end.base, WINDOW_ROWS);
    expect(end.base + shown).toBe(known);
    expect(end.top).toBe(Math.max(shown * ROW_PX - HEIGHT, 0));
  },
);

test.each([ALL, ALL + 1, 100_050, 120_000])(
  'a list of %i rows scrolls to its end and back, a thousand rows at a time, without skipping any',
  (all) => {
    let view: WindowView = { ...WINDOW_START, height: HEIGHT };
    const end = rowAt(windowAtEnd(all, HEIGHT));
    for (let row = 1_000; row < end; row += 1_000) {
      view = scrolled(view, 1_000, all);
      expect(rowAt(view)).toBe(row);
    }
    view = scrolled(view, 1_000, all);
    expect(rowAt(view)).toBe(end);
    while (rowAt(view) > 0) {
      const before = rowAt(view);
      view = scrolled(view, -1_000, all);
      expect(rowAt(view)).toBeCloseTo(Math.max(before - 1_000, 0), 6);
    }
    expect(view.base).toBe(0);
  },
);
