import { expect, setDefaultTimeout, test } from 'bun:test';
import { copy, everything, fillWorld, freshKey, freshOf, serveWorld } from '../support/copy_fixtures.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer } from '../support/postgres_server.ts';

setDefaultTimeout(300_000);

test('a database is copied through PgBouncer in transaction mode to PostgreSQL and back', async () => {
  const server = await sharedServer();
  const bouncer = await startPgBouncer(server);
  const key = freshKey();
  const [source, target, back] = [
    await freshOf('sqlite', key),
    await freshOf('postgres', key),
    await freshOf('sqlite', key),
  ];
  const service = await serveWorld(source);
  await fillWorld(service);
  await service.stop();
  const name = new URL(target.url).pathname.slice(1);
  const through = { url: `${bouncer.url(name)}?prepare=off` };
  const copied = await copy(source, through);
  expect([copied.stderr, copied.code]).toEqual(['', 0]);
  const copiedBack = await copy(through, back);
  expect([copiedBack.stderr, copiedBack.code]).toEqual(['', 0]);
  expect(await everything(back)).toEqual(await everything(source));
  await bouncer.stop();
});
