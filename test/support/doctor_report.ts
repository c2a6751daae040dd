import { Database } from 'bun:sqlite';
import { expect } from 'bun:test';
import { chmodSync, copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '../../src/access/clients/clients.ts';
import { readSettings } from '../../src/app/config/parse.ts';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import { parseScopes } from '../../src/model/principal.ts';
import { oidcProfile } from '../../src/model/resources.ts';
import { type CheckReport, isHealthy } from '../../src/ops/doctor/inspection.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { sqliteAt, type TestDatabase } from './database.ts';
import { type Environment, runAuthrealm } from './processes.ts';
import { createFixture, type Fixture, freshFolder, insertRecord } from './service.ts';

export const UNKNOWN_ID = '99999999-9999-4999-8999-999999999999';

export interface DoctorRun {
  readonly code: number;
  readonly healthy: boolean;
  readonly text: string;
  /** The names of the checks that failed or could not run. */
  readonly unhealthy: readonly string[];
  /** Undefined for a check that did not run. */
  report(check: string): CheckReport;
}

export function runDoctorOnFile(path: string, environment: Environment = {}): Promise<DoctorRun> {
  return runDoctorOn(sqliteAt(path), environment);
}

/** Runs `doctor` on a database, without the check of the server. */
export async function runDoctorOn(
  { args }: Pick<TestDatabase, 'args'>,
  environment: Environment = {},
): Promise<DoctorRun> {
  const found = await runDoctor(args, environment);
  // The settings of a test server are not durable.
  const unhealthy = found.unhealthy.filter((check) => check !== 'server');
  const healthy = unhealthy.length === 0;
  return { ...found, unhealthy, healthy, code: healthy ? 0 : found.code };
}

/** Runs `doctor` with these arguments. */
export async function runDoctor(args: readonly string[], environment: Environment = {}): Promise<DoctorRun> {
  const { stdout, stderr, code } = await runAuthrealm(['doctor', '--json', ...args], environment);
  expect(stderr).toBe('');
  const { healthy, checks } = JSON.parse(stdout) as { healthy: boolean; checks: CheckReport[] };
  return {
    code,
    healthy,
    text: stdout,
    unhealthy: checks.filter((report) => !isHealthy(report)).map(({ check }) => check),
    report: (name) => checks.find(({ check }) => check === name) as CheckReport,
  };
}

/** Creates two fixtures, a sealed secret and a client. */
export async function createHealthyFixture(db: OpenDatabase): Promise<{ first: Fixture; second: Fixture }> {
  const first = await createFixture(db);
  const { realm, oidcProfile: profile, passwordProfile } = first;
  const second = await createFixture(db, {
    realm,
    oidcProfile: profile,
    passwordProfile,
    username: 'Jürgen Ⅳ',
  });
  const id = systemClock.mintId();
  await insertRecord(db, oidcProfile, [realm, id], {
    name: 'Sealed',
    discovery_url: 'https://other.example/.well-known/openid-configuration',
    client_id: 'shop',
    client_secret: db.keyring.seal(
      'oidc-client-secret',
      { table: 'oidc_profile', column: 'client_secret_sealed', realm, id },
      'secret-of-the-provider',
    ),
    issuer: 'https://other.example',
  });
  const scopes = parseScopes('users:read') ?? new Set<string>();
  await createClient(db.engine.access, 'n', { scopes, realms: new Set([realm]) }, systemClock);
  return { first, second };
}

/** What somebody may do to a database, and what `doctor` says of it. */
export interface DatabaseFault {
  readonly name: string;
  readonly check: string;
  readonly says: RegExp;
  readonly sql: string | ((first: Fixture) => string);
  /** The record that a finding must name. */
  readonly id?: (first: Fixture) => string;
}

/** Those of both engines. */
export const COMMON_FAULTS: readonly DatabaseFault[] = [
  {
    name: 'a missing index',
    check: 'schema',
    says: /index password_profile_info_username is missing/,
    sql: 'drop index password_profile_info_username',
  },
  {
    name: 'an index that is no longer unique',
    check: 'schema',
    says: /index oidc_profile_info_subject is not as this program creates it/,
    sql: `drop index oidc_profile_info_subject;
      create index oidc_profile_info_subject on oidc_profile_info (realm_id, issuer, subject)`,
  },
  {
    name: 'the absence of an active signing key',
    check: 'signing keys',
    says: /no signing key is active/,
    sql: 'update signing_key set withdrawn_at = 1',
  },
  {
    name: 'a newer schema',
    check: 'migrations',
    says: /schema 900 is newer than this program: install authrealm 9\.9\.9/,
    sql: `insert into migration (version, name, applied_at, program_version, serves_from) values (900, 'later', 1, '9.9.9', 900)`,
  },
  {
    name: 'a pending migration',
    check: 'migrations',
    says: /directory is pending/,
    sql: 'delete from migration where version = 1',
  },
];

/** Fails unless `doctor` found a fault, and printed no value of the records. */
export function expectFound(
  found: DoctorRun,
  fault: DatabaseFault,
  [first, second]: [Fixture, Fixture],
): void {
  expect([found.code, found.healthy]).toEqual([1, false]);
  const { findings, total } = found.report(fault.check);
  const matching = findings.filter(({ says }) => fault.says.test(says));
  expect([findings, matching.length > 0, total > 0]).toEqual([findings, true, true]);
  if (fault.id) expect(matching.flatMap(({ ids = [] }) => ids)).toContain(fault.id(first));
  for (const value of [first.subject, first.username, second.username, 'jane@example.com', 'Jane Doe'])
    expect(found.text).not.toContain(value);
}

export const sqlOf = ({ sql }: DatabaseFault, first: Fixture): string =>
  typeof sql === 'string' ? sql : sql(first);

/** A database file with that fixture. */
export async function createHealthyFile(): Promise<{ path: string; first: Fixture; second: Fixture }> {
  const path = join(freshFolder(), 'checked.db');
  const db = await openDatabase(readSettings({ database: `sqlite:${path}` }, {}), systemClock);
  const fixtures = await createHealthyFixture(db);
  db.engine.close();
  return { path, ...fixtures };
}

/** The same as a closed database file with its key. */
export async function createClosedFile(): Promise<string> {
  const { path } = await createHealthyFile();
  const copy = join(freshFolder(), 'closed.db');
  tamperFile(path, (db) => db.run('vacuum into ?', [copy]));
  chmodSync(copy, 0o600);
  tamperFile(copy, (db) => db.run('pragma journal_mode = wal'));
  copyFileSync(`${path}.key`, `${copy}.key`);
  return copy;
}

/** Changes a database file without foreign key checks. */
export function tamperFile(path: string, work: (db: Database) => void): void {
  const db = new Database(path);
  db.run('pragma foreign_keys = off');
  work(db);
  db.close();
}
