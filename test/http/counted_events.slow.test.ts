import { expect, test } from 'bun:test';
import { freshDatabase } from '../support/database.ts';
import { startServiceProcess } from '../support/service_process.ts';

test('after kill -9 of a service its log has the first of each counted event, and lacks the number of further ones', async () => {
  const database = await freshDatabase();
  const served = await startServiceProcess({ database, scope: 'users:read' });
  const token = await served.token();
  await served.token();
  for (const _ of [1, 2, 3])
    expect((await served.get('/v2/authentication-realms', 'a.b.c')).status).toBe(401);
  expect((await served.get('/admin/v1/clients', token)).status).toBe(403);
  served.running.process.kill('SIGKILL');
  await served.running.process.exited;
  const entries = await database.query<{ action: string; detail: string }>(
    `select action, detail from act where action in ('token.granted', 'access.refused') order by seq`,
  );
  expect(entries.map(({ action, detail }) => [action, JSON.parse(detail).reason])).toEqual([
    ['token.granted', undefined],
    ['access.refused', 'bad token'],
    ['access.refused', 'insufficient scope'],
  ]);
}, 300_000);
