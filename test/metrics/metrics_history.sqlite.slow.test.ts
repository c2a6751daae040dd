import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase } from '../support/database.ts';
import { createFixture, oidcPath } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';

test('every process answers the same metrics history, with the lookups of all', async () => {
  const database = await freshDatabase();
  const db = await openDatabase(database.settings(), systemClock);
  const fixture = await createFixture(db);
  await db.engine.close();
  const served = await startServiceProcess({
    database,
    scope: 'oidc-profile-infos:read admin',
    flags: ['--metrics-port', '0', '--processes', '3'],
  });
  const token = await served.token();
  const read = async () => {
    const answer = await served.get('/admin/v1/metrics/history', token);
    expect(answer.status).toBe(200);
    const { data } = (await answer.json()) as {
      data: { points: readonly { readonly at: string; readonly lookups_per_second?: number }[] };
    };
    return data.points;
  };
  const end = performance.now() + 4 * LIMITS.metricsHistoryStepMs;
  while (!(await read()).some(({ lookups_per_second: rate = 0 }) => rate > 0)) {
    expect(performance.now()).toBeLessThan(end);
    // Over separate connections, so that every process gets some.
    await Promise.all(Array.from({ length: 30 }, () => served.get(oidcPath(fixture), token)));
    await Bun.sleep(200);
  }
  const answers = await Promise.all(Array.from({ length: 30 }, read));
  expect(new Set(answers.map((points) => points[0]?.at)).size).toBe(1);
}, 300_000);
