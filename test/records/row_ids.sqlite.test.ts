import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { NIL_UUID, type Uuid, uuidBytes } from '../../src/model/id.ts';
import { rowIdOf } from '../../src/records/store/sqlite/row_id.ts';

test('a row ID is the time of the UUID modulo 2^41 milliseconds, then twelve random bits', () => {
  const property = fc.property(fc.uuid(), (id) => {
    const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    expect(rowIdOf(uuidBytes(id as Uuid))).toBe(
      (time % 2 ** 41) * 4096 + Number.parseInt(id.slice(20, 23), 16),
    );
  });
  fc.assert(property, { numRuns: 2_000 });
});

test('every row ID is an integer from 0 to Number.MAX_SAFE_INTEGER', () => {
  expect(rowIdOf(uuidBytes(NIL_UUID))).toBe(0);
  expect(rowIdOf(uuidBytes('ffffffff-ffff-ffff-ffff-ffffffffffff' as Uuid))).toBe(Number.MAX_SAFE_INTEGER);
});

test('UUIDs of increasing times have increasing row IDs', () => {
  const rowIds = Array.from({ length: 50 }, (_, index) =>
    rowIdOf(uuidBytes(Bun.randomUUIDv7('hex', 1_800_000_000_000 + index) as Uuid)),
  );
  expect(rowIds).toEqual(rowIds.toSorted((left, right) => left - right));
});

test('most of a thousand UUIDs of one millisecond have distinct row IDs', () => {
  const rowIds = Array.from({ length: 1_000 }, () =>
    rowIdOf(uuidBytes(Bun.randomUUIDv7('hex', 1_800_000_000_000) as Uuid)),
  );
  expect(new Set(rowIds).size).toBeGreaterThan(800);
});
