import { expect, test } from 'bun:test';
import { createPagedRows } from '../../console/parts/paged_rows.ts';

/** The rows of a list of a million, loaded in pages of 100. */

const ALL = 1_000_000;
const PAGE = 100;

function counted() {
  const requestedOffsets: number[] = [];
  const rows = createPagedRows<number>(async (cursor) => {
    const first = Number(cursor || 0);
    requestedOffsets.push(first);
    const items = Array.from({ length: Math.min(PAGE, ALL - first) }, (_, index) => first + index);
    return { items, next: first + PAGE < ALL ? String(first + PAGE) : undefined };
  });
  return { rows, requestedOffsets };
}

test('a list of a million rows is read in order, and each page once', async () => {
  const { rows, requestedOffsets } = counted();
  await rows.load(0, 30);
  while (!rows.isComplete) await rows.load(rows.known - 30, rows.known);
  expect(rows.known).toBe(ALL);
  expect(requestedOffsets.length).toBe(ALL / PAGE);
  expect(rows.at(ALL - 1)).toBe(ALL - 1);
  expect(rows.at(ALL)).toBeUndefined();
}, 300_000);

test('rows far from the visible ones are dropped, and read again when they become visible', async () => {
  const { rows, requestedOffsets } = counted();
  await rows.load(0, 30);
  while (rows.known < 20_000) await rows.load(rows.known - 30, rows.known);
  const held = Array.from({ length: rows.known }, (_, index) => rows.at(index)).filter(
    (row) => row !== undefined,
  );
  expect(held.length).toBeLessThanOrEqual(6_000);
  expect(rows.at(0)).toBeUndefined();
  const before = requestedOffsets.length;
  await rows.load(0, 30);
  expect(rows.at(0)).toBe(0);
  expect(requestedOffsets.slice(before)).toEqual([0]);
});

test('concurrent reads of the same page are one request', async () => {
  const { rows, requestedOffsets } = counted();
  await Promise.all([rows.load(0, 30), rows.load(0, 30), rows.load(0, 30)]);
  expect(requestedOffsets).toEqual([0]);
});
