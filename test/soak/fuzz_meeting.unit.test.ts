import { expect, test } from 'bun:test';
import { openMeeting } from './fuzzing/meeting.ts';

/** A meeting of three, what was done there, and who is through with it. */
function meeting(during = async () => {}) {
  const done: string[] = [];
  const { come, stayAway } = openMeeting(3, async () => {
    done.push('during');
    await during();
  });
  const comes = (name: string) =>
    come().then(
      () => done.push(name),
      (error: Error) => done.push(`${name}: ${error.message}`),
    );
  return { done, comes, stayAway };
}

test('nobody is through before the last one has come and all is done', async () => {
  const work = Promise.withResolvers<void>();
  const { done, comes } = meeting(() => work.promise);
  const came = [comes('a'), comes('b')];
  await Bun.sleep(0);
  expect(done).toEqual([]);
  came.push(comes('c'));
  await Bun.sleep(0);
  expect(done).toEqual(['during']);
  work.resolve();
  await Promise.all(came);
  expect(done).toEqual(['during', 'a', 'b', 'c']);
});

test.each([
  ['before the others came', 0],
  ['after they came', 2],
])('who stays away is not waited for: said %s', async (_, before) => {
  const { done, comes, stayAway } = meeting();
  const came = [];
  for (let at = 0; at < 2; at += 1) {
    if (at === before) stayAway();
    came.push(comes(String(at)));
  }
  if (before === 2) stayAway();
  await Promise.all(came);
  expect(done).toEqual(['during', '0', '1']);
});

test('where nobody comes nothing is done', async () => {
  const { done, stayAway } = meeting();
  for (let at = 0; at < 3; at += 1) stayAway();
  await Bun.sleep(0);
  expect(done).toEqual([]);
});

test('what goes wrong there everybody hears', async () => {
  const { done, comes } = meeting(async () => {
    throw new Error('it broke');
  });
  await Promise.all(['a', 'b', 'c'].map(comes));
  expect(done).toEqual(['during', 'a: it broke', 'b: it broke', 'c: it broke']);
});
