import { expect, test } from 'bun:test';
import { SQL } from 'bun';
import { atEnd } from '../support/ending.ts';
import { databaseThrough } from '../support/fault_injection.ts';
import { startServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { startServiceProcess } from '../support/service_process.ts';

/** A server with too few connections for two processes. */

const CONNECTIONS = 12;
const server = await startServer({
  max_connections: String(CONNECTIONS),
  superuser_reserved_connections: '0',
});
atEnd(() => server.stop());

/** Its connection is one of them. */
const holder = new SQL(server.url(), { max: 1 });
atEnd(() => holder.close());

/** The connections of lookups: the ones that the readiness check has asked last. */
const LOOKUPS = `from pg_stat_activity where query like 'select store_id from instance%' and pid <> pg_backend_pid()`;

/** Takes connections until this many are left. */
async function leaveConnections(count: number): Promise<void> {
  const [row] = await holder.unsafe(
    `select count(*)::integer as used from pg_stat_activity where backend_type = 'client backend'`,
  );
  for (let used = row.used; used < CONNECTIONS - count; used += 1) {
    const further = new SQL(server.url(), { max: 1 });
    atEnd(() => further.close());
    // The first process may have opened one meanwhile.
    await further.unsafe('select 1').catch(({ errno }) => expect(errno).toBe('53300'));
  }
}

const { direct, flags } = await databaseThrough(server, [server.port]);
await runCommand([AUTHREALM, 'migrate', '--database', direct]);
const database = { args: ['--database', flags.database, '--master-key-file', flags.masterKeyFile] };
const first = await startServiceProcess({ database, scope: 'realms:read' });
const readiness = async () => (await first.withoutRetry.get('/readyz')).status;

test('a process that cannot open connections for lookups does not start, and names how many it needs', async () => {
  await leaveConnections(2);
  const second = await runCommand(['timeout', '20', AUTHREALM, 'serve', '--port', '0', ...database.args], {});
  expect([second.code, second.stderr]).toEqual([
    1,
    expect.stringMatching(/the server has no connection left.*a process needs up to 11/),
  ]);
  expect(await readiness()).toBe(200);
});

test('a process is not ready while lookups have no connection', async () => {
  await holder.unsafe(`select pg_terminate_backend(pid) ${LOOKUPS}`);
  while ((await holder.unsafe(`select 1 ${LOOKUPS}`)).length > 0) await Bun.sleep(5);
  await leaveConnections(0);
  expect(await readiness()).toBe(503);
});
