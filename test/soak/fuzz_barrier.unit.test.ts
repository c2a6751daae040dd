import { expect, test } from 'bun:test';
import { openBarrier } from './fuzz/barrier.ts';

/** A barrier of three workers, and the order in which its action and its workers finish. */
function threeWorkers(action = async () => {}) {
  const done: string[] = [];
  const { arrive, leave } = openBarrier(3, async () => {
    done.push('action');
    await action();
  });
  const worker = (name: string) =>
    arrive().then(
      () => done.push(name),
      (error: Error) => done.push(`${name}: ${error.message}`),
    );
  return { done, worker, leave };
}

test('no worker passes before the last one arrived and the action is done', async () => {
  const work = Promise.withResolvers<void>();
  const { done, worker } = threeWorkers(() => work.promise);
  const arrived = [worker('a'), worker('b')];
  await Bun.sleep(0);
  expect(done).toEqual([]);
  arrived.push(worker('c'));
  await Bun.sleep(0);
  expect(done).toEqual(['action']);
  work.resolve();
  await Promise.all(arrived);
  expect(done).toEqual(['action', 'a', 'b', 'c']);
});

test.each([
  ['before the others arrive', 0],
  ['after the others arrived', 2],
])('the barrier does not wait for a worker that leaves %s', async (_, before) => {
  const { done, worker, leave } = threeWorkers();
  const arrived = [];
  for (let at = 0; at < 2; at += 1) {
    if (at === before) leave();
    arrived.push(worker(String(at)));
  }
  if (before === 2) leave();
  await Promise.all(arrived);
  expect(done).toEqual(['action', '0', '1']);
});

test('the action does not run when every worker leaves', async () => {
  const { done, leave } = threeWorkers();
  for (let at = 0; at < 3; at += 1) leave();
  await Bun.sleep(0);
  expect(done).toEqual([]);
});

test('every worker receives the error of the action', async () => {
  const { done, worker } = threeWorkers(async () => {
    throw new Error('it broke');
  });
  await Promise.all(['a', 'b', 'c'].map(worker));
  expect(done).toEqual(['action', 'a: it broke', 'b: it broke', 'c: it broke']);
});
