import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { Refusal } from '../../src/domain/fault.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openEngine, type PostgresAddress, parseDatabase } from '../../src/store/open.ts';
import { freshDaemonFolder, HOST, runAsDaemon } from '../support/daemons.ts';
import { freshMasterKey } from '../support/fault_injection.ts';
import { freshFolder } from '../support/folder.ts';
import { type PostgresServer, startServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** What a start says about PostgreSQL when it will not do (issue 5, bad input). */

const FIXTURES = join(import.meta.dir, '../fixtures');
const CERTIFICATE = join(FIXTURES, 'localhost.cert.pem');
const PASSWORD = 'hunter2-and-nobody-else';

/** One that speaks TLS, and one that does not. */
let server: PostgresServer;
let bare: PostgresServer;

beforeAll(async () => {
  const folder = freshDaemonFolder();
  // The server insists on a key that is its user's own.
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
  [server, bare] = await Promise.all([startServer(tls), startServer(few)]);
  await admin(
    server,
    `create role clerk login password '${PASSWORD}'`,
    `create role ghost password '${PASSWORD}'`,
  );
}, 300_000);
afterAll(() => Promise.all([server.stop(), bare.stop()]));

async function admin({ url }: Pick<PostgresServer, 'url'>, ...statements: readonly string[]): Promise<void> {
  const sql = new SQL(url(), { max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.close();
}

/** What opening a database says; undefined where it opens. */
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

/** The server's databases by another name or port of it, with parameters. */
const reached = (host: string, port: number, query = '') =>
  `postgres://postgres@${host}:${port}/postgres${query}`;

describe('says what to do about', () => {
  test('a host that nobody knows', async () => {
    expect(await refusal(reached('nowhere.invalid', 5432, '?sslmode=disable'))).toMatch(
      /nobody knows a host/,
    );
  });

  test('a port that nobody listens on', async () => {
    expect(await refusal(reached(HOST, 1))).toMatch(/nobody listens there .*listen_addresses/);
  });

  test('a port that somebody else listens on', async () => {
    const other = Bun.serve({ hostname: HOST, port: 0, fetch: () => new Response('') });
    expect(await refusal(reached(HOST, other.port as number))).toMatch(/does not answer as PostgreSQL does/);
    await other.stop(true);
  }, 300_000);

  test('a wrong password, none, and a role that is not there', async () => {
    for (const url of [
      server.url('postgres', 'clerk', `${PASSWORD}-not`),
      server.url('postgres', 'clerk'),
      server.url('postgres', 'nobody', PASSWORD),
    ])
      expect(await refusal(url)).toMatch(/password.*--database-password-file/);
  });

  test('a role that may not log in', async () => {
    expect(await refusal(server.url('postgres', 'ghost', PASSWORD))).toMatch(
      /does not let that user in .*pg_hba/,
    );
  });

  test('a database that is not there', async () => {
    expect(await refusal(server.url('nowhere'))).toMatch(/no such database \(3D000\); make it/);
  });

  test('a role that may not make the schema', async () => {
    expect(await refusal(server.url('postgres', 'clerk', PASSWORD))).toMatch(/role clerk may not .*grant/);
  });

  test('a schema that lacks a table', async () => {
    const url = await server.freshDatabase();
    expect(await refusal(url)).toBeUndefined();
    const sql = new SQL(url, { max: 1 });
    await sql.unsafe('alter table signing_key rename to odd');
    await sql.close();
    const words = ['client', 'list', '--database', url, '--master-key-file', freshMasterKey()];
    const { code, stderr } = await runCommand([AUTHREALM, ...words]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/schema is not the one .* \(42P01\); run authrealm migrate/),
    ]);
  });

  test('a server that takes no writes', async () => {
    const url = await bare.freshDatabase();
    await admin(
      bare,
      `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`,
    );
    expect(await refusal(url)).toMatch(/it is read-only \(25006\)/);
  });

  test('a server without a connection left', async () => {
    const url = await bare.freshDatabase();
    const hogs: SQL[] = [];
    const take = () => {
      const hog = new SQL(bare.url(), { max: 1 });
      hogs.push(hog);
      return hog.unsafe('select 1');
    };
    await (async () => {
      for (;;) await take();
    })().catch(() => undefined);
    expect(await refusal(url)).toMatch(/no connection left \(53300\); raise max_connections/);
    await Promise.all(hogs.map((hog) => hog.close()));
    expect(await refusal(url)).toBeUndefined();
  });
});

describe('TLS', () => {
  const SYSTEM = '?sslmode=verify-full';
  const OURS = `${SYSTEM}&sslrootcert=${CERTIFICATE}`;

  test('a server that does not speak it', async () => {
    expect(await refusal(reached(HOST, bare.port, '?sslmode=require'))).toMatch(/does not speak TLS/);
  });

  test('a certificate that nobody trusted has signed, whatever the environment says', async () => {
    const url = reached(HOST, server.port, SYSTEM);
    expect(await refusal(url)).toMatch(/signed by nobody who is trusted.*sslrootcert/);
    const { code, stderr } = await runCommand(
      [AUTHREALM, 'client', 'list', '--database', url, '--master-key-file', freshMasterKey()],
      { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
    );
    expect([code, stderr]).toEqual([1, expect.stringContaining('signed by nobody who is trusted')]);
  });

  test('a certificate for another name; a host that is not loopback is verified unless told otherwise', async () => {
    const elsewhere = reached('127.1', server.port);
    expect(await refusal(elsewhere)).toMatch(/signed by nobody who is trusted/);
    expect(await refusal(`${elsewhere}${OURS}`)).toMatch(/for another name .*verify-ca/);
    expect(await refusal(`${elsewhere}${OURS.replace('full', 'ca')}`)).toBeUndefined();
  });

  test('a certificate that is verified, and the encryption that comes of it', async () => {
    expect(await refusal(reached(HOST, server.port, OURS))).toBeUndefined();
    expect(await refusal(reached(HOST, server.port, '?sslmode=require'))).toBeUndefined();
  });

  test('a file of certificates that is not there, or holds none', async () => {
    const junk = join(freshFolder(), 'junk.pem');
    writeFileSync(junk, 'junk');
    for (const path of [join(freshFolder(), 'none.pem'), junk]) {
      const url = reached(HOST, server.port, `?sslrootcert=${path}`);
      expect(await refusal(url)).toMatch(/file of sslrootcert cannot be used/);
    }
  });
});

describe('a file with the password', () => {
  const url = () => server.url('postgres', 'clerk');
  const passwordFile = join(freshFolder(), 'password');

  test('is read, less the end of its line', async () => {
    writeFileSync(passwordFile, `${PASSWORD}\n`);
    expect(await refusal(url(), { passwordFile })).toMatch(/role clerk may not/);
  });

  test('that is not there is told', async () => {
    expect(await refusal(url(), { passwordFile: `${passwordFile}.none` })).toMatch(
      /file with the password cannot be read/,
    );
  });
});

test('a command ends with 1 and no stack, and never tells the password', async () => {
  const { code, stdout, stderr } = await runCommand(
    [AUTHREALM, 'client', 'list', '--master-key-file', freshMasterKey()],
    { AUTHREALM_DATABASE: server.url('nowhere', 'clerk', PASSWORD) },
  );
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^authrealm: the database nowhere on 127\.0\.0\.1:\d+ cannot be opened: [^\n]+\n$/);
  expect(stderr).not.toContain(PASSWORD);
});
