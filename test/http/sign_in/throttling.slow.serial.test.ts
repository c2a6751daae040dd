import { describe, expect, test } from 'bun:test';
import { comparableResponse, startService } from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  createPassword,
  DEVICE_HEADER,
  from,
  openGuesses,
  type PasswordFixture,
  signInTokenOf,
  startGuessedService,
} from '../../support/sign_in.ts';

/** What wrong passwords do to later requests: docs/guides/password-guessing.md. */

const { service, accounts, signIn, statusOf } = await startGuessedService();
const { db, clock } = service;

const HOUR_MS = 3_600_000;
const HOURS = 5;
/** Fewer than in the suite of budgets (test/sign_in/guesses.slow.test.ts): each is two requests. */
const GUESSES = 2_000;

/** A name that is guessed at. */
interface GuessedName {
  readonly of: PasswordFixture;
  checked: number;
  /** The responses to guesses that were not checked, without their wait. */
  readonly refusals: Set<string>;
}

/** Sends a guess at each name at the same time. Returns the wait of each in seconds, 0 for a guess that was checked. */
function guessEach(names: readonly GuessedName[], password: string, headers: Record<string, string>) {
  return Promise.all(
    names.map(async (name) => {
      const answer = await signIn(name.of, password, headers);
      if (answer.status === 400) {
        name.checked += 1;
        return 0;
      }
      const response = await comparableResponse(answer);
      name.refusals.add(response.replace(/"retry-after","\d+"/, ''));
      return Number(answer.headers.get('retry-after'));
    }),
  );
}

describe('wrong passwords', () => {
  test('of one name from 1,000 addresses are checked 100 times and six an hour of 2,000, while its owner signs in, and an unknown name looks the same', async () => {
    const jane = await createPassword(db, accounts);
    const nobody = { ...jane, username: 'nobody-here@example.com' };
    const first = await signIn(jane, jane.password, from('203.0.113.20'));
    const known = from('203.0.113.20', { [DEVICE_HEADER]: first.headers.get(DEVICE_HEADER) ?? '' });
    const refusals = new Set<string>();
    const names = [jane, nobody].map((of) => ({ of, checked: 0, refusals }));
    const waits: (readonly [number, number])[] = [];
    let [ownerIn, refusedOwner] = [0, 0];
    for (let at = 0; at < GUESSES; at += 1) {
      const address = from(`198.18.${(at % 1_000) >> 8}.${at & 255}`);
      const [ofKnown = 0, ofUnknown = 0] = await guessEach(names, `guess ${at}`, address);
      waits.push([ofKnown, ofUnknown]);
      // The right password, without the device.
      if (ofKnown > 60 && refusedOwner === 0)
        refusedOwner = await statusOf(jane, jane.password, from('203.0.113.20'));
      if (at % (GUESSES / 100) === 0 && (await statusOf(jane, jane.password, known)) === 201) ownerIn += 1;
      clock.advance((HOURS * HOUR_MS) / GUESSES);
    }
    for (const { checked } of names) {
      expect(checked).toBeGreaterThanOrEqual(100);
      expect(checked).toBeLessThanOrEqual(100 + HOURS * 6);
    }
    expect([ownerIn, refusedOwner]).toEqual([100, 429]);
    expect([...refusals]).toEqual([expect.stringContaining('429')]);
    // A busy machine delays single responses, or answers a check too late and gets it again.
    const refusedBoth = waits.filter((both) => !both.includes(0));
    const alike = refusedBoth.filter(([one, other]) => Math.abs(one - other) <= 1);
    expect(refusedBoth.length).toBeGreaterThan(GUESSES / 2);
    expect(alike.length).toBeGreaterThan(refusedBoth.length * 0.95);
    clock.advance(600_000);
    expect(await statusOf(jane, jane.password, from('203.0.113.9'))).toBe(201);
  }, 900_000);
});

test('right passwords of one name are all answered, and logged in an entry a minute with their number', async () => {
  const own = await startService({ logSignIns: 'true' });
  const startedAt = performance.now();
  try {
    const { accounts: realmId } = await createSettingsRealms(own.db);
    const john = await createPassword(own.db, realmId);
    const { statusOf } = openGuesses(own, await signInTokenOf(own));
    for (let count = 0; count < 70; count += 1)
      expect(await statusOf(john, john.password, from(`203.0.114.${count}`))).toBe(201);
  } finally {
    await own.stop();
  }
  const entries = await own.database.query<{ detail: string }>(
    `select detail from act where action = 'sign-in.succeeded'`,
  );
  const minutes = Math.floor((performance.now() - startedAt) / 60_000);
  const numbers = entries.map(({ detail }) => JSON.parse(detail).count ?? 1);
  expect(numbers.reduce((sum, count) => sum + count, 0)).toBe(70);
  expect(numbers.length).toBeLessThanOrEqual(2 + minutes);
}, 60_000);
