import { afterAll, describe, expect, test } from 'bun:test';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SQL } from 'bun';
import { createNewKeyFile } from '../../src/access/keys/master_key.ts';
import { type Flags, readSettings } from '../../src/app/config/parse.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import {
  COMMON_FAULTS,
  createHealthyFixture,
  type DatabaseFault,
  type DoctorRun,
  expectFound,
  runDoctor,
  sqlOf,
} from '../support/doctor_report.ts';
import { freshFolder } from '../support/folder.ts';
import { startServer } from '../support/postgres_server.ts';
import { AUTHREALM, startCommand } from '../support/processes.ts';
import { createFixture, type Fixture } from '../support/service.ts';

/** A server with durable settings: the shared one has fsync off, which `doctor` reports. */
const server = await startServer();

afterAll(() => server.stop('immediate'));

interface Healthy {
  readonly url: string;
  readonly flags: Flags;
  readonly words: readonly string[];
  readonly first: Fixture;
  readonly second: Fixture;
}

let roleCount = 0;

/** A database with two records of each resource, a sealed secret and a client; its role has the minimum privileges. */
async function healthy(): Promise<Healthy> {
  roleCount += 1;
  const url = await server.freshDatabase();
  const database = new URL(url).pathname.slice(1);
  const role = `app_${roleCount}`;
  await runAsSuperuser(url, `create role ${role} login password 'it''s secret'`);
  const folder = freshFolder();
  const [passwordFile, masterKeyFile] = [join(folder, 'password'), join(folder, 'master.key')];
  writeFileSync(passwordFile, "it's secret\n", { mode: 0o600 });
  createNewKeyFile(masterKeyFile, systemClock);
  const flags = {
    database: server.url(database, role),
    databasePasswordFile: passwordFile,
    masterKeyFile,
  };
  const db = await openDatabase(readSettings({ ...flags, migrateDatabase: url }, {}), systemClock);
  const { first, second } = await createHealthyFixture(db);
  await db.engine.close();
  const words = [
    ...['--database', flags.database, '--database-password-file', passwordFile],
    ...['--master-key-file', masterKeyFile],
  ];
  return { url, flags, words, first, second };
}

/** Runs SQL as a superuser, without triggers and foreign keys. */
async function runAsSuperuser(url: string, sql: string): Promise<void> {
  const client = new SQL(url, { max: 1 });
  await client
    .unsafe(`set session_replication_role = replica; ${sql}`)
    .simple()
    .finally(() => client.close());
}

const findings = (found: DoctorRun, check: string) => found.report(check).findings.map(({ says }) => says);

test('doctor reports a healthy PostgreSQL database with settings, program, keys and server', async () => {
  const { words, flags } = await healthy();
  const found = await runDoctor(words, { AUTHREALM_MIGRATE_DATABASE: 'postgres://o:hunter2@db.example/d' });
  expect([found.unhealthy, found.code, found.healthy]).toEqual([[], 0, true]);
  expect(found.report('settings').facts).toContain(`AUTHREALM_DATABASE = ${flags.database} (flag)`);
  expect(found.report('settings').facts).toContain(
    'AUTHREALM_MIGRATE_DATABASE = postgres://o@db.example/d (environment)',
  );
  expect(found.text).not.toMatch(/hunter2|secret-of|it's secret|auth0\|/);
  expect(found.report('program').facts.join()).toMatch(/authrealm \d.*Unicode.*postgres 1[5-8]/);
  expect(found.report('sealed values').facts).toEqual(['3 of them']);
  expect(found.report('server').facts).toContain('fsync = on');
});

test('doctor of an older schema reports the pending migrations', async () => {
  const { url, words } = await healthy();
  await runAsSuperuser(url, 'update migration set version = 0, serves_from = 0');
  const found = await runDoctor(words);
  expect(found.unhealthy).toEqual(['migrations']);
  expect(findings(found, 'migrations')).toEqual(['1 directory is pending: run "authrealm migrate"']);
});

test('doctor does not change a PostgreSQL database', async () => {
  const { url, words } = await healthy();
  const position = async () => {
    const client = new SQL(url, { max: 1 });
    const [row] = await client.unsafe(
      `select pg_current_wal_insert_lsn()::text as place, pg_snapshot_xmax(pg_current_snapshot())::text as next`,
    );
    await client.close();
    return row;
  };
  const client = new SQL(url, { max: 1 });
  await client.unsafe('checkpoint').finally(() => client.close());
  const before = await position();
  await runDoctor(words);
  expect((await position()).next).toBe(before.next);
});

test('doctor finds a PostgreSQL database healthy during writes', async () => {
  const { words, flags } = await healthy();
  const db = await openDatabase(readSettings(flags, {}), systemClock);
  const child = startCommand([AUTHREALM, 'doctor', '--json', ...words]);
  let isDone = false;
  void child.process.exited.then(() => {
    isDone = true;
  });
  let writes = 0;
  while (!isDone) {
    await createFixture(db);
    writes += 1;
  }
  expect([await child.process.exited, writes > 1]).toEqual([0, true]);
  await db.engine.close();
}, 300_000);

const FAULTS: readonly DatabaseFault[] = [
  ...COMMON_FAULTS,
  {
    name: 'a column with another collation',
    check: 'schema',
    says: /column user_info\.email_key is not as this program creates it/,
    sql: 'alter table user_info alter email_key type text collate "default"',
  },
  {
    name: 'a column without its default',
    check: 'schema',
    says: /column realm_clock\.moved is not as this program creates it/,
    sql: 'alter table realm_clock alter moved drop default',
  },
  {
    name: 'a missing foreign key',
    check: 'schema',
    says: /constraint user_info\.user_info_realm_id_fkey is missing/,
    sql: 'alter table user_info drop constraint user_info_realm_id_fkey',
  },
  {
    name: 'an unknown table',
    check: 'schema',
    says: /table stray is not part of the schema of this program/,
    sql: 'create table stray (id int); grant select, insert, update, delete on stray to public',
  },
  {
    name: 'an invalid index',
    check: 'integrity',
    says: /index user_info_by_email is invalid and not used by queries: run reindex index user_info_by_email/,
    sql: `update pg_index set indisvalid = false where indexrelid = 'user_info_by_email'::regclass`,
  },
  {
    name: 'a signing key that does not decrypt',
    check: 'sealed values',
    says: /private_sealed cannot be decrypted/,
    sql: `update signing_key set private_sealed = private_sealed || '\\x00'::bytea`,
  },
  {
    name: 'an unlogged table',
    check: 'server',
    says: /^erasure: unlogged tables, which a crash empties/,
    sql: 'alter table erasure set unlogged',
  },
];

describe('faults in a PostgreSQL database', () => {
  for (const fault of FAULTS) {
    test(`doctor finds ${fault.name} in a PostgreSQL database`, async () => {
      const { url, words, first, second } = await healthy();
      await runAsSuperuser(url, `set allow_system_table_mods = on; ${sqlOf(fault, first)}`);
      expectFound(await runDoctor(words), fault, [first, second]);
    });
  }
});

test('a missing privilege prevents only the checks of doctor that need it', async () => {
  const { url, words } = await healthy();
  await runAsSuperuser(url, `revoke select on act from app_${roleCount}`);
  const found = await runDoctor(words);
  expect(found.unhealthy).toEqual(['proxies']);
  expect(found.report('proxies').unchecked).toBe('permission denied for table act');
});

test('doctor finds a password file that other users may read', async () => {
  const { words, flags } = await healthy();
  chmodSync(flags.databasePasswordFile ?? '', 0o644);
  expect(findings(await runDoctor(words), 'files')).toEqual([
    `${flags.databasePasswordFile} has mode 0644, so other users can read or write it: run chmod 600`,
  ]);
});

test('doctor without a master key runs the checks that need none and names the command that creates one', async () => {
  const { words } = await healthy();
  const found = await runDoctor(words.slice(0, 4));
  expect(found.unhealthy).toEqual(['master key', 'sealed values']);
  expect(found.report('master key').unchecked).toContain('create one with "authrealm keys make FILE"');
});
