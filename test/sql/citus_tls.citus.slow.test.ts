import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCluster } from '../support/citus_cluster.ts';
import { freshDaemonFolder, runAsDaemon } from '../support/daemons.ts';
import { freshMasterKey } from '../support/database.ts';
import { ROLES } from '../support/postgres_server.ts';
import { createFixture, oidcPath, type Service, startService } from '../support/service.ts';

/** TLS between the service and the nodes of a cluster. Connections between nodes are not encrypted. */

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));
const CERTIFICATE = join(FIXTURES, 'localhost.cert.pem');
const [OWNER, SERVICE] = ROLES;

const folder = freshDaemonFolder();
// The server requires that its user owns the key file.
for (const name of ['cert', 'key']) {
  const text = readFileSync(join(FIXTURES, `localhost.${name}.pem`), 'utf8');
  await runAsDaemon(['sh', '-c', 'umask 077; printf %s "$1" >"$0"', join(folder, name), text], folder);
}
const settings = { ssl: 'on', ssl_cert_file: join(folder, 'cert'), ssl_key_file: join(folder, 'key') };
const cluster = await startCluster({ settings });
const database = new URL(await cluster.freshDatabase()).pathname.slice(1);

const query = `?sslmode=verify-full&sslrootcert=${CERTIFICATE}`;
const hosts = (name: string) => cluster.nodes.map(({ port }) => `${name}:${port}`).join();
const urlOf = (role: string, host: string, more = '') =>
  `postgres://${role}@${hosts(host)}/${database}${query}${more}`;

const openedBy = (host: string) =>
  startService({
    database: urlOf(SERVICE, host, '&load_balance_hosts=random'),
    migrateDatabase: urlOf(OWNER, host),
    masterKeyFile: freshMasterKey(),
    offline: 'true',
  });

let service: Service | undefined;

test('a service connects to every node of a cluster with TLS, whichever of them routes', async () => {
  service = await openedBy('localhost');
  const fixture = await createFixture(service.db);
  const token = await service.token('profile-infos:read');
  expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
  const sessions = `select s.ssl, a.application_name like 'citus_internal%' as is_internal
    from pg_stat_ssl s join pg_stat_activity a using (pid)
    where a.usename = '${SERVICE}' and a.datname = '${database}' and a.backend_type = 'client backend'`;
  const found = await Promise.all(
    cluster.nodes.map((node) => cluster.run<Session>(node.url(database), sessions, node)),
  );
  const ofService = found.flat().filter(({ is_internal }) => !is_internal);
  expect(ofService.length).toBeGreaterThan(0);
  expect(ofService.filter(({ ssl }) => !ssl)).toEqual([]);
});

interface Session {
  readonly ssl: boolean;
  readonly is_internal: boolean;
}

test('a node of a cluster whose certificate has another name is refused', async () => {
  await expect(openedBy('127.1')).rejects.toThrow(/for another host name/);
});
