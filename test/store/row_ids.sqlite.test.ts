import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Uuid } from '../../src/domain/id.ts';
import { rowIdOf } from '../../src/store/sqlite/row_id.ts';

test('a slot is the time of an identifier modulo 2^41 milliseconds, then twelve bits of chance', () => {
  const property = fc.property(fc.uuid(), (id) => {
    const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    expect(rowIdOf(id as Uuid)).toBe((time % 2 ** 41) * 4096 + Number.parseInt(id.slice(20, 23), 16));
  });
  fc.assert(property, { numRuns: 2_000 });
});

test('every slot is a whole number that the engine and the language both hold exactly', () => {
  expect(rowIdOf('00000000-0000-0000-0000-000000000000' as Uuid)).toBe(0);
  expect(rowIdOf('ffffffff-ffff-ffff-ffff-ffffffffffff' as Uuid)).toBe(Number.MAX_SAFE_INTEGER);
});

test('identifiers that are minted one after the other lie one after the other', () => {
  const slots = Array.from({ length: 50 }, (_, index) =>
    rowIdOf(Bun.randomUUIDv7('hex', 1_800_000_000_000 + index) as Uuid),
  );
  expect(slots).toEqual(slots.toSorted((left, right) => left - right));
});

test('a thousand minted in one millisecond mostly have slots of their own', () => {
  const slots = Array.from({ length: 1_000 }, () =>
    rowIdOf(Bun.randomUUIDv7('hex', 1_800_000_000_000) as Uuid),
  );
  expect(new Set(slots).size).toBeGreaterThan(800);
});
