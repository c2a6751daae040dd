import { expect, test } from 'bun:test';
import { ROW_PX } from '../../console/parts/drawn_rows.ts';
import { endOf, followed, START, STRETCH_ROWS, type View } from '../../console/parts/stretch.ts';

/** A list of a million rows, of which a browser can hold a stretch. */

const ALL = 1_000_000;
const HEIGHT = 628;

/** The row at the upper edge of what is seen. */
const rowAt = ({ base, top }: View) => base + top / ROW_PX;

/** Scrolls by some rows, as far as the stretch goes. */
function scrolled(view: View, rows: number): View {
  const end = Math.min(ALL - view.base, STRETCH_ROWS) * ROW_PX - HEIGHT;
  const scrollTop = Math.min(Math.max(view.top + rows * ROW_PX, 0), end);
  return followed({ scrollTop, clientHeight: HEIGHT }, view, ALL);
}

test('its end is seen at once, from wherever it was seen before', () => {
  const end = endOf(ALL, HEIGHT);
  expect(rowAt(end) + HEIGHT / ROW_PX).toBe(ALL);
  expect(ALL - end.base).toBeLessThanOrEqual(STRETCH_ROWS);
  expect(scrolled(end, 1)).toEqual(end);
});

test.each([0, 1, 12, 99_999, 100_000, 100_001, 149_999, 150_000, 250_000])(
  'so is that of %i rows',
  (known) => {
    const end = endOf(known, HEIGHT);
    const shown = Math.min(known - end.base, STRETCH_ROWS);
    expect(end.base + shown).toBe(known);
    expect(end.top).toBe(Math.max(shown * ROW_PX - HEIGHT, 0));
  },
);

test('is gone through to its end and back, a thousand rows at a time, and none is passed over', () => {
  let view: View = { ...START, height: HEIGHT };
  const end = endOf(ALL, HEIGHT);
  for (let row = 1_000; row < rowAt(end); row += 1_000) {
    view = scrolled(view, 1_000);
    expect(rowAt(view)).toBe(row);
  }
  view = scrolled(view, 1_000);
  expect(rowAt(view)).toBe(rowAt(end));
  while (rowAt(view) > 0) {
    const before = rowAt(view);
    view = scrolled(view, -1_000);
    expect(rowAt(view)).toBeCloseTo(Math.max(before - 1_000, 0), 6);
  }
  expect(view.base).toBe(0);
});
