import { afterAll, expect, test } from 'bun:test';
import { freshSeed, seededRandom } from '../support/random.ts';
import { freshFolder } from '../support/service.ts';
import { drawOf } from './fuzz/draw.ts';
import { FAULTS } from './torturing/faults.ts';
import { torture } from './torturing/rounds.ts';
import { type EngineName, setScene } from './torturing/scene.ts';

/** A short run of `test/soak/torture.ts`: each fault that this machine can have strikes in one round. */

const seed = freshSeed();
const scene = await setScene((process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite') as EngineName, freshFolder());
afterAll(() => scene.end());

const fitting = FAULTS.filter((fault) => fault.fits(scene));

test('nothing acknowledged is lost and nothing is invented, whatever goes wrong', async () => {
  const told = await torture(scene, { seed, rounds: fitting.length, operations: 100, clients: 3 });
  const complaints = told.flatMap((round) => round.complaints);
  expect({ seed, complaints }).toEqual({ seed, complaints: [] });
  expect(new Set(told.flatMap(({ faults }) => faults))).toEqual(new Set(fitting.map(({ name }) => name)));
  for (const { operations, acknowledged } of told) {
    expect(operations).toBeGreaterThanOrEqual(100);
    expect(acknowledged).toBeGreaterThan(30);
  }
  expect(await scene.service.stop()).toBe(0);
}, 300_000);

test('the same seed draws the same', () => {
  const drawn = () => {
    const draw = drawOf(seededRandom(7));
    return [draw.below(100), draw.word(5), draw.happens(0.5), draw.one(['a', 'b', 'c'])];
  };
  expect(drawn()).toEqual(drawn());
});
