import { expect, setDefaultTimeout, test } from 'bun:test';
import { runBackupRounds } from '../../soak/backup_rounds.ts';
import { freshSeed, seededRandom } from '../../support/random.ts';
import { freshFolder } from '../../support/service.ts';

setDefaultTimeout(300_000);

test('backups under write load match the model at their time, and restores contain no erased user', async () => {
  const seed = freshSeed();
  const outcome = await runBackupRounds({
    folder: freshFolder(),
    backups: 3,
    users: 500,
    writers: 6,
    chance: seededRandom(seed),
  });
  expect([seed, outcome.complaints]).toEqual([seed, []]);
  expect(outcome.acknowledged).toBeGreaterThan(50);
  expect(outcome.erased).toBeGreaterThan(0);
});
