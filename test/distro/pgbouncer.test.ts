import { expect, test } from 'bun:test';
import { SQL } from 'bun';
import { type PostgresAddress, parsePostgres } from '../../src/ops/store/open.ts';
import { openStore, runContracts } from '../records/contract/contracts.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer } from '../support/postgres_server.ts';

/** The contract of the store through PgBouncer of Debian in transaction mode. */

async function freshName(): Promise<string> {
  return new URL(await (await sharedServer()).freshDatabase()).pathname.slice(1);
}
// Fewer connections than callers: transactions change connections.
const bouncer = await startPgBouncer(await sharedServer(), { default_pool_size: '5' });

runContracts('PgBouncer of Debian in transaction mode', async () =>
  openStore(parsePostgres(`${bouncer.url(await freshName())}?prepare=off`) as PostgresAddress),
);

test('two clients share one connection of a transaction pool', async () => {
  const database = await freshName();
  const ofOneConnection = await startPgBouncer(await sharedServer(), { default_pool_size: '1' });
  const clients = [1, 2].map(() => new SQL(ofOneConnection.url(database), { max: 1, prepare: false }));
  const backends = new Set<number>();
  for (const number of [1, 2, 3]) {
    for (const client of clients) {
      const [row] = await client`select ${number}::int as number, pg_backend_pid() as backend`;
      expect(row.number).toBe(number);
      backends.add(row.backend);
    }
  }
  expect(backends.size).toBe(1);
  await Promise.all(clients.map((client) => client.close()));
  await ofOneConnection.stop();
  await expect(new SQL(ofOneConnection.url(database), { max: 1 }).unsafe('select 1')).rejects.toThrow();
});
