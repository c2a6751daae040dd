import { afterAll, describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { Refusal } from '../../src/model/fault.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, type PostgresAddress, parseDatabase } from '../../src/ops/store/open.ts';
import { freshDaemonFolder, HOST, runAsDaemon } from '../support/daemons.ts';
import { writeMasterKey } from '../support/fault_injection.ts';
import { freshFolder } from '../support/folder.ts';
import { type PostgresServer, startServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** The messages of a start that PostgreSQL refuses. */

const FIXTURES = join(import.meta.dir, '../fixtures');
const CERTIFICATE = join(FIXTURES, 'localhost.cert.pem');
const PASSWORD = 'hunter2-of-the-test';

const folder = freshDaemonFolder();
// The server requires that its user owns the key file.
for (const name of ['cert', 'key']) {
  const text = readFileSync(join(FIXTURES, `localhost.${name}.pem`), 'utf8');
  await runAsDaemon(['sh', '-c', 'umask 077; printf %s "$1" >"$0"', join(folder, name), text], folder);
}
const tls = { ssl: 'on', ssl_cert_file: join(folder, 'cert'), ssl_key_file: join(folder, 'key') };
const few = {
  max_connections: '12',
  superuser_reserved_connections: '0',
  max_wal_senders: '0',
};
/** A server with TLS, and one without. */
const [server, plain] = await Promise.all([startServer(tls), startServer(few)]);
await admin(
  server,
  `create role clerk login password '${PASSWORD}'`,
  `create role ghost password '${PASSWORD}'`,
);
afterAll(() => Promise.all([server.stop(), plain.stop()]));

async function admin({ url }: Pick<PostgresServer, 'url'>, ...statements: readonly string[]): Promise<void> {
  const sql = new SQL(url(), { max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.close();
}

/** The message of a refusal to open the database, or undefined if it opens. */
async function refusal(url: string, more: Partial<PostgresAddress> = {}): Promise<string | undefined> {
  const address = parseDatabase(url) as PostgresAddress;
  try {
    const engine = await openEngine({ ...address, ...more }, 'auto', {
      version: 'test',
      clock: systemClock,
    });
    await engine.close();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    const { message } = error as Refusal;
    expect(message).not.toContain(PASSWORD);
    return message;
  }
}

/** The URL of the database by this host and port, with parameters. */
const urlOf = (host: string, port: number, query = '') =>
  `postgres://postgres@${host}:${port}/postgres${query}`;

describe('a start on an unusable PostgreSQL', () => {
  test('a start with an unknown host is refused with advice', async () => {
    expect(await refusal(urlOf('nowhere.invalid', 5432, '?sslmode=disable'))).toMatch(
      /the host refused the connection, or its name cannot be resolved .*check the host in --database/,
    );
  });

  test('a start with a port without a listener is refused with advice', async () => {
    expect(await refusal(urlOf(HOST, 1))).toMatch(/the host refused the connection.*listen_addresses/);
  });

  test('a start with the port of another protocol is refused with advice', async () => {
    const other = Bun.serve({ hostname: HOST, port: 0, fetch: () => new Response('') });
    expect(await refusal(urlOf(HOST, other.port as number))).toMatch(
      /did not answer with the PostgreSQL protocol/,
    );
    await other.stop(true);
  }, 300_000);

  test('a start with a wrong password, no password or a missing role is refused with advice', async () => {
    for (const url of [
      server.url('postgres', 'clerk', `${PASSWORD}-not`),
      server.url('postgres', 'clerk'),
      server.url('postgres', 'missing', PASSWORD),
    ])
      expect(await refusal(url)).toMatch(/password.*--database-password-file/);
  });

  test('a start with a role that may not log in is refused with advice', async () => {
    expect(await refusal(server.url('postgres', 'ghost', PASSWORD))).toMatch(
      /does not allow this user to connect .*pg_hba/,
    );
  });

  test('a start with a missing database is refused with advice', async () => {
    expect(await refusal(server.url('nowhere'))).toMatch(/no such database \(3D000\); create it/);
  });

  test('a start with a role that may not create the schema is refused with advice', async () => {
    expect(await refusal(server.url('postgres', 'clerk', PASSWORD))).toMatch(/role clerk may not .*grant/);
  });

  test('a command on a schema without one of its tables is refused with advice', async () => {
    const url = await server.freshDatabase();
    expect(await refusal(url)).toBeUndefined();
    const sql = new SQL(url, { max: 1 });
    await sql.unsafe('alter table signing_key rename to odd');
    await sql.close();
    const args = ['client', 'list', '--database', url, '--master-key-file', writeMasterKey()];
    const { code, stderr } = await runCommand([AUTHREALM, ...args]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/schema does not match this program \(42P01\); run authrealm migrate/),
    ]);
  });

  test('a start on a read-only server is refused with advice', async () => {
    const url = await plain.freshDatabase();
    await admin(
      plain,
      `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`,
    );
    expect(await refusal(url)).toMatch(/the server is read-only \(25006\)/);
  });

  test('a start on a server without a connection left is refused with advice', async () => {
    const url = await plain.freshDatabase();
    const connections: SQL[] = [];
    const connect = () => {
      const connection = new SQL(plain.url(), { max: 1 });
      connections.push(connection);
      return connection.unsafe('select 1');
    };
    await (async () => {
      for (;;) await connect();
    })().catch(() => undefined);
    expect(await refusal(url)).toMatch(
      /no connection left \(53300\); a process needs up to 11: raise max_connections/,
    );
    await Promise.all(connections.map((connection) => connection.close()));
    expect(await refusal(url)).toBeUndefined();
  });
});

describe('TLS', () => {
  const SYSTEM = '?sslmode=verify-full';
  const OWN_ROOT = `${SYSTEM}&sslrootcert=${CERTIFICATE}`;

  test('a server without TLS is refused when sslmode requires TLS', async () => {
    expect(await refusal(urlOf(HOST, plain.port, '?sslmode=require'))).toMatch(/does not support TLS/);
  });

  test('a certificate of an untrusted issuer is refused, whatever the environment says', async () => {
    const url = urlOf(HOST, server.port, SYSTEM);
    expect(await refusal(url)).toMatch(/not signed by a trusted authority.*sslrootcert/);
    const { code, stderr } = await runCommand(
      [AUTHREALM, 'client', 'list', '--database', url, '--master-key-file', writeMasterKey()],
      { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
    );
    expect([code, stderr]).toEqual([1, expect.stringContaining('not signed by a trusted authority')]);
  });

  test('a certificate for another name is refused; by default every host but loopback is verified', async () => {
    const byOtherName = urlOf('127.1', server.port);
    expect(await refusal(byOtherName)).toMatch(/not signed by a trusted authority/);
    expect(await refusal(`${byOtherName}${OWN_ROOT}`)).toMatch(/for another host name .*verify-ca/);
    expect(await refusal(`${byOtherName}${OWN_ROOT.replace('full', 'ca')}`)).toBeUndefined();
  });

  test('a verified certificate is accepted, and sslmode=require accepts any certificate', async () => {
    expect(await refusal(urlOf(HOST, server.port, OWN_ROOT))).toBeUndefined();
    expect(await refusal(urlOf(HOST, server.port, '?sslmode=require'))).toBeUndefined();
  });

  test('an sslrootcert file that is missing or holds no certificate is refused', async () => {
    const junk = join(freshFolder(), 'junk.pem');
    writeFileSync(junk, 'junk');
    for (const path of [join(freshFolder(), 'none.pem'), junk]) {
      const url = urlOf(HOST, server.port, `?sslrootcert=${path}`);
      expect(await refusal(url)).toMatch(/the sslrootcert file cannot be used/);
    }
  });
});

describe('a password file', () => {
  const url = () => server.url('postgres', 'clerk');
  const passwordFile = join(freshFolder(), 'password');

  test('a password file is read without its line end', async () => {
    writeFileSync(passwordFile, `${PASSWORD}\n`);
    expect(await refusal(url(), { passwordFile })).toMatch(/role clerk lacks select/);
  });

  test('a missing password file is reported', async () => {
    expect(await refusal(url(), { passwordFile: `${passwordFile}.none` })).toMatch(
      /the password file cannot be read/,
    );
  });
});

test('a command that cannot connect exits with 1, without a stack trace and without the password', async () => {
  const { code, stdout, stderr } = await runCommand(
    [AUTHREALM, 'client', 'list', '--master-key-file', writeMasterKey()],
    { AUTHREALM_DATABASE: server.url('nowhere', 'clerk', PASSWORD) },
  );
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^authrealm: the database nowhere on 127\.0\.0\.1:\d+ cannot be opened: [^\n]+\n$/);
  expect(stderr).not.toContain(PASSWORD);
});
