import { afterAll, expect, test } from 'bun:test';
import { freshSeed, seededRandom } from '../support/random.ts';
import { freshFolder } from '../support/service.ts';
import { drawOf } from './fuzz/draw.ts';
import { type EngineName, openTortureEnvironment } from './torture/environment.ts';
import { FAULTS } from './torture/faults.ts';
import { torture } from './torture/rounds.ts';

/** A short run of `test/soak/torture.ts`: one round for each fault that this machine supports. */

const seed = freshSeed();
const environment = await openTortureEnvironment(
  (process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite') as EngineName,
  freshFolder(),
);
afterAll(() => environment.end());

const faults = FAULTS.filter((fault) => fault.fits(environment));

test('no acknowledged write is lost and none is invented under any fault', async () => {
  const reports = await torture(environment, { seed, rounds: faults.length, operations: 100, clients: 3 });
  const complaints = reports.flatMap((round) => round.complaints);
  expect({ seed, complaints }).toEqual({ seed, complaints: [] });
  expect(new Set(reports.flatMap((report) => report.faults))).toEqual(
    new Set(faults.map(({ name }) => name)),
  );
  for (const { operations, acknowledged } of reports) {
    expect(operations).toBeGreaterThanOrEqual(100);
    expect(acknowledged).toBeGreaterThan(30);
  }
  expect(await environment.service.stop()).toBe(0);
}, 300_000);

test('two draws from the same seed are equal', () => {
  const drawn = () => {
    const draw = drawOf(seededRandom(7));
    return [draw.below(100), draw.word(5), draw.happens(0.5), draw.one(['a', 'b', 'c'])];
  };
  expect(drawn()).toEqual(drawn());
});
