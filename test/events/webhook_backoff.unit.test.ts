import { beforeEach, expect, test } from 'bun:test';
import type { Uuid } from '../../src/domain/id.ts';
import { backoffMs, openTargetBackoff, type TargetBackoff } from '../../src/events/webhooks/backoff.ts';
import type { Delivery } from '../../src/events/webhooks/port.ts';

const [ONE, OTHER] = ['one', 'other'] as [Uuid, Uuid];

let now: number;
let backoff: TargetBackoff;

beforeEach(() => {
  now = 0;
  backoff = openTargetBackoff(() => now);
});

function unreachable(realm: Uuid): void {
  backoff.record({ realm, outcome: 'unreachable', status: undefined });
}

/** Lets the realm fail as soon as the target may be tried, and returns the lengths of the backoffs. */
function backoffsOf(realm: Uuid, count: number): readonly number[] {
  return Array.from({ length: count }, () => {
    unreachable(realm);
    const start = now;
    while (backoff.isActive()) now += 125;
    return now - start;
  });
}

test('messages of two realms without a response begin a backoff of their target, which doubles up to its bound', () => {
  unreachable(ONE);
  expect(backoffsOf(OTHER, 11)).toEqual(Array.from({ length: 11 }, (_, at) => backoffMs(at + 1, 1)));
});

test('a single realm whose messages get no response begins no backoff of its target', () => {
  expect(backoffsOf(ONE, 5)).toEqual([0, 0, 0, 0, 0]);
});

test('messages that fail during the backoff of a target do not extend it', () => {
  unreachable(ONE);
  unreachable(OTHER);
  for (now = 250; now < backoffMs(1, 1); now += 250) unreachable(ONE);
  expect(backoff.isActive()).toBeFalse();
  expect(backoffsOf(ONE, 1)).toEqual([backoffMs(2, 1)]);
});

const RESPONSES: readonly (readonly [string, Pick<Delivery, 'outcome' | 'status'>, boolean])[] = [
  ['a response of 204', { outcome: 'delivered', status: 204 }, false],
  ['a response of 500', { outcome: 'refused', status: 500 }, false],
  ['a response of 429', { outcome: 'refused', status: 429 }, true],
  ['a response of 502', { outcome: 'refused', status: 502 }, true],
  ['a response of 503', { outcome: 'refused', status: 503 }, true],
  ['a response of 504', { outcome: 'refused', status: 504 }, true],
];

test.each(RESPONSES)(
  'after %s a target is backed off only if the status is 429, 502, 503 or 504',
  (_, response, isActive) => {
    unreachable(ONE);
    backoff.record({ realm: OTHER, ...response });
    expect(backoff.isActive()).toBe(isActive);
    unreachable(ONE);
    backoff.record({ realm: OTHER, ...response });
    expect(backoff.isActive()).toBe(isActive);
  },
);

test('after a response the backoff of a target begins again at its least', () => {
  unreachable(ONE);
  backoffsOf(OTHER, 3);
  backoff.record({ realm: ONE, outcome: 'delivered', status: 204 });
  expect(backoff.isActive()).toBeFalse();
  unreachable(ONE);
  expect(backoffsOf(OTHER, 1)).toEqual([backoffMs(1, 1)]);
});
