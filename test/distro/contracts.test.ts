import { afterAll, beforeAll } from 'bun:test';
import { parseDatabase } from '../../src/store/open.ts';
import { openStore, runContracts } from '../store/contract/contracts.ts';
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer } from '../support/postgres_server.ts';

/** The contract of the store on PostgreSQL and PgBouncer of Debian. */

let bouncer: PgBouncer;
beforeAll(async () => {
  // Fewer connections than callers: transactions change connections.
  bouncer = await startPgBouncer(await sharedServer(), { default_pool_size: '5' });
});
afterAll(() => bouncer.stop());

async function freshUrl(): Promise<string> {
  return (await sharedServer()).freshDatabase();
}

function open(url: string) {
  const address = parseDatabase(url);
  if (!address) throw new Error(`${url} is not a database URL`);
  return openStore(address);
}

runContracts('PostgreSQL of Debian', async () => open(await freshUrl()));

runContracts('PgBouncer of Debian in transaction mode', async () => {
  const { pathname } = new URL(await freshUrl());
  return open(`${bouncer.url(pathname.slice(1))}?prepare=off`);
});
