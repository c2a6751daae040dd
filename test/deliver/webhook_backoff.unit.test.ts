import { beforeEach, expect, test } from 'bun:test';
import { type Availability, backoffMs, openAvailability } from '../../src/deliver/webhooks/backoff.ts';
import type { Delivery } from '../../src/deliver/webhooks/webhook.ts';
import type { Uuid } from '../../src/model/id.ts';

const [ONE, OTHER] = ['one', 'other'] as [Uuid, Uuid];

let now: number;
let availability: Availability;

beforeEach(() => {
  now = 0;
  availability = openAvailability(() => now);
});

function fail(realm: Uuid, attempt = 1): void {
  availability.record({ realm, outcome: 'unreachable', status: undefined, attempt });
}

/** How long the target is suspended from now on. */
function suspendedMs(): number {
  const start = now;
  while (availability.isSuspended()) now += 125;
  return now - start;
}

test('messages of two realms without a response suspend their target as long as the one that failed most often waits', () => {
  fail(ONE, 3);
  fail(OTHER, 2);
  expect(suspendedMs()).toBe(backoffMs(3, 1));
  fail(OTHER, 20);
  expect(suspendedMs()).toBe(backoffMs(20, 1));
});

test('a single realm whose messages get no response does not suspend its target', () => {
  for (let count = 1; count < 5; count += 1) fail(ONE, count);
  expect(suspendedMs()).toBe(0);
});

test('messages that fail while their target is suspended do not extend it', () => {
  fail(ONE);
  fail(OTHER);
  now = 1_000;
  fail(OTHER, 2);
  expect(suspendedMs()).toBe(backoffMs(1, 1) - 1_000);
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
  'after %s a target is suspended only if the status is 429, 502, 503 or 504',
  (_, response, isSuspended) => {
    for (let count = 0; count < 2; count += 1) {
      fail(ONE);
      availability.record({ realm: OTHER, attempt: 1, ...response });
      expect(availability.isSuspended()).toBe(isSuspended);
    }
  },
);

test('a response ends the suspension of a target, and a change of the target as well', () => {
  for (const end of [
    () => availability.record({ realm: ONE, outcome: 'delivered', status: 204, attempt: 1 }),
    () => availability.restore(),
  ]) {
    fail(ONE);
    fail(OTHER);
    expect(availability.isSuspended()).toBeTrue();
    end();
    expect(availability.isSuspended()).toBeFalse();
    fail(OTHER);
    expect(availability.isSuspended()).toBeFalse();
  }
});
