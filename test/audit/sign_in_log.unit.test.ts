import { expect, test } from 'bun:test';
import { openSignInLog } from '../../src/audit/sign_in_log.ts';
import { type AuditEntry, createAuditEntry } from '../../src/domain/audit_entry.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';

const HOUR_MS = 3_600_000;
const REALM = systemClock.mintId();

/** A log that is not written while `isDown`, and the number of sign-ins in each entry. */
function openFixture() {
  const state = { time: 0, isDown: false };
  const entries: AuditEntry[] = [];
  const clock = { ...systemClock, now: () => state.time, monotonic: () => state.time };
  const append = async (appended: readonly AuditEntry[]) => {
    if (state.isDown) throw new Error('no database');
    entries.push(...appended);
  };
  const log = openSignInLog({ append }, clock);
  return {
    ...{ state, entries, log },
    counts: () => entries.map(({ object, detail }) => `${object} ${detail.count ?? 1}`),
    async signIn(object: string, count: number) {
      const fields = { realm: REALM, user: 'user' as Uuid, object, detail: {} };
      for (let at = 0; at < count; at += 1)
        await log.add(createAuditEntry('sign-in.succeeded', fields, clock));
    },
  };
}

const each = (object: string, count: number) => new Array<string>(count).fill(`${object} 1`);

test('sign-ins of a username have 59 entries an hour, and one with the number of the others once the hour has ended', async () => {
  const { state, entries, log, counts, signIn } = openFixture();
  await signIn('jane', 59);
  state.time = 1_000;
  await signIn('jane', 11);
  await signIn('john', 59);
  await log.writeNumbers();
  expect(counts()).toEqual([...each('jane', 59), ...each('john', 59)]);
  state.time = HOUR_MS;
  await log.writeNumbers();
  expect(entries.at(-1)).toEqual({
    ...{ action: 'sign-in.succeeded', realm: REALM, user: 'user' as Uuid, object: 'jane', at: HOUR_MS },
    ...{ id: expect.any(String), actor: 'authrealm', address: undefined, requestId: undefined },
    detail: { count: 11, since: '1970-01-01T00:00:01.000Z' },
  });
  entries.length = 0;
  await signIn('jane', 60);
  await log.writeNumbers('all');
  await log.writeNumbers('all');
  expect(counts()).toEqual([...each('jane', 59), 'jane 1']);
});

test('the number of sign-ins is written by the next call if the database cannot be reached', async () => {
  const { state, log, counts, signIn } = openFixture();
  await signIn('jane', 61);
  Object.assign(state, { time: HOUR_MS, isDown: true });
  expect(await log.writeNumbers().catch(({ message }) => message)).toBe('no database');
  state.isDown = false;
  await log.writeNumbers();
  await log.writeNumbers();
  expect(counts()).toEqual([...each('jane', 59), 'jane 2']);
});

test('the sign-ins of 100,000 usernames are counted, and one more ends the hour of the first', async () => {
  const { log, counts, entries, signIn } = openFixture();
  await signIn('first', 60);
  for (let at = 1; at < LIMITS.rateBucketsMax; at += 1) await signIn(`user${at}`, 1);
  await signIn('first', 1);
  entries.length = 0;
  await signIn('one more', 1);
  await signIn('first', 1);
  await log.writeNumbers();
  expect(counts()).toEqual(['one more 1', 'first 1', 'first 2']);
});
