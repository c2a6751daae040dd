import { expect, test } from 'bun:test';
import { SQL } from 'bun';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer } from '../support/postgres_server.ts';

test('two clients share one connection of a transaction pool', async () => {
  const server = await sharedServer();
  const database = new URL(await server.freshDatabase()).pathname.slice(1);
  const bouncer = await startPgBouncer(server, { default_pool_size: '1' });
  const clients = [1, 2].map(() => new SQL(bouncer.url(database), { max: 1, prepare: false }));
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
  await bouncer.stop();
  await expect(new SQL(bouncer.url(database), { max: 1 }).unsafe('select 1')).rejects.toThrow();
});
