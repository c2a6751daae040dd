import { expect, setDefaultTimeout, test } from 'bun:test';
import {
  allRows,
  createCopyFixture,
  freshDatabaseOf,
  newMasterKey,
  runCopy,
  startCopyService,
} from '../support/copy_fixtures.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer } from '../support/postgres_server.ts';

setDefaultTimeout(300_000);

test('a database is copied through PgBouncer in transaction mode to PostgreSQL and back', async () => {
  const server = await sharedServer();
  const bouncer = await startPgBouncer(server);
  const key = newMasterKey();
  const [source, target, back] = [
    await freshDatabaseOf('sqlite', key),
    await freshDatabaseOf('postgres', key),
    await freshDatabaseOf('sqlite', key),
  ];
  const service = await startCopyService(source);
  await createCopyFixture(service);
  await service.stop();
  const name = new URL(target.url).pathname.slice(1);
  const through = { url: `${bouncer.url(name)}?prepare=off` };
  const copied = await runCopy(source, through);
  expect([copied.stderr, copied.code]).toEqual(['', 0]);
  const copiedBack = await runCopy(through, back);
  expect([copiedBack.stderr, copiedBack.code]).toEqual(['', 0]);
  expect(await allRows(back)).toEqual(await allRows(source));
});
