import { describe, expect, test } from 'bun:test';
import { generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readSettings } from '../../src/app/config/parse.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import type { CheckReport } from '../../src/ops/doctor/inspection.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { COUNTED_RESOURCES, countColumn } from '../../src/sql/tables/record_counts.ts';
import {
  createClosedFile,
  createHealthyFile,
  type DoctorRun,
  runDoctorOnFile,
  tamperFile,
} from '../support/doctor_report.ts';
import {
  AUTHREALM,
  AUTHREALM_UNPRIVILEGED,
  runAuthrealm,
  runCommand,
  startCommand,
} from '../support/processes.ts';
import { createFixture, freshFolder } from '../support/service.ts';

test('doctor reports a healthy SQLite database with settings, files, program and keys', async () => {
  const path = await createClosedFile();
  const found = await runDoctorOnFile(path, {
    AUTHREALM_TOKEN_LIFETIME: '600',
    AUTHREALM_BASE_URL: 'https://idp.example',
  });
  expect([found.code, found.healthy]).toEqual([0, true]);
  const { facts } = found.report('settings');
  expect(facts).toContain(`AUTHREALM_DATABASE = sqlite:${path} (flag)`);
  expect(facts).toContain('AUTHREALM_TOKEN_LIFETIME = 600 (environment)');
  expect(facts.filter((fact) => /\((default|not given)\)$/.test(fact))).toEqual([]);
  expect(found.report('files').facts.join()).toContain(`${path}: ${statSync(path).size} bytes, mode 0600`);
  expect(found.report('program').facts.join()).toMatch(/authrealm \d.*Unicode.*sqlite 3\./);
  expect(found.report('sealed values').facts).toEqual(['3 of them']);
  expect(found.report('signing keys').facts.join()).toMatch(/ signs$/);
  expect(found.report('clients').facts).toEqual(['1, of them 0 disabled']);
  expect(found.text).not.toContain('auth0|');
  const page = await runAuthrealm(['doctor', '--database', `sqlite:${path}`]);
  expect([page.code, page.stdout]).toEqual([0, expect.stringMatching(/^healthy\n/)]);
});

test('docs/guides/troubleshooting.md lists every check of doctor in order', async () => {
  const { path } = await createHealthyFile();
  const page = await Bun.file(join(import.meta.dir, '../../docs/guides/troubleshooting.md')).text();
  const listed = [...(page.split('\n## Doctor\n')[1]?.split('\n## ')[0] ?? '').matchAll(/^- `([^`]+)`:/gm)];
  const { text } = await runDoctorOnFile(path);
  const { checks } = JSON.parse(text) as { checks: CheckReport[] };
  expect(listed.map(([, name]) => name)).toEqual(checks.map(({ check }) => check));
});

test('the statement of docs/guides/troubleshooting.md corrects every total', async () => {
  const { path } = await createHealthyFile();
  const page = await Bun.file(join(import.meta.dir, '../../docs/guides/troubleshooting.md')).text();
  const [, statement = ''] = /```sql\n(update realm_clock.*?)```/s.exec(page) ?? [];
  const columns = COUNTED_RESOURCES.map(countColumn);
  const read = () => {
    let totals: unknown[] = [];
    tamperFile(path, (db) => {
      totals = db.query(`select realm_id, ${columns.join(', ')} from realm_clock`).all();
    });
    return totals;
  };
  const before = read();
  expect(before.length).toBeGreaterThan(0);
  tamperFile(path, (db) =>
    db.run(`update realm_clock set ${columns.map((name) => `${name} = ${name} + 7`).join(', ')}`),
  );
  tamperFile(path, (db) => db.run(statement));
  expect(read()).toEqual(before);
});

test('doctor does not change a SQLite database', async () => {
  // No other connection has this file open and could checkpoint it.
  const path = await createClosedFile();
  const before = Bun.hash(await Bun.file(path).bytes());
  await runDoctorOnFile(path);
  expect(Bun.hash(await Bun.file(path).bytes())).toBe(before);
});

test('doctor never prints the master key', async () => {
  const { path } = await createHealthyFile();
  const key = (await Bun.file(`${path}.key`).text()).trim();
  const found = await runDoctorOnFile(path, { AUTHREALM_MASTER_KEY: key });
  expect(found.report('settings').facts).toContain('AUTHREALM_MASTER_KEY = *** (environment)');
  expect([found.code, found.text.includes(key)]).toEqual([0, false]);
});

test('doctor finds an index that lacks a row', async () => {
  const path = await createClosedFile();
  tamperFile(path, (db) => {
    const root = db.query<{ rootpage: number }, [string]>(
      'select rootpage from sqlite_schema where name = ?',
    );
    const { rootpage } = root.get('oidc_profile_info_subject') ?? { rootpage: 0 };
    // The index is one page: its row count is set to one less.
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.of(0, 1), 0, 2, (rootpage - 1) * 4096 + 3);
    closeSync(file);
  });
  const found = await runDoctorOnFile(path);
  const messages = found.report('integrity').findings.map(({ says }) => says);
  expect([found.code, messages.join()]).toEqual([
    1,
    expect.stringMatching(/index oidc_profile_info_subject/),
  ]);
});

test('doctor shows at most twenty findings of a check and counts all', async () => {
  const { path } = await createHealthyFile();
  tamperFile(path, (db) => {
    for (let count = 0; count < 50; count += 1) db.run(`create table stray_${count} (a)`);
  });
  const { findings, total } = (await runDoctorOnFile(path)).report('schema');
  expect([findings.length, total]).toEqual([20, 50]);
});

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8');
const LOCALHOST = fixture('localhost.cert.pem');
const LOCALHOST_KEY = fixture('localhost.key.pem');
const ANOTHER_KEY = generateKeyPairSync('ed25519').privateKey.export({
  type: 'pkcs8',
  format: 'pem',
}) as string;
/** Of the key of localhost, for January 2024. */
const EXPIRED = `-----BEGIN CERTIFICATE-----
MIHPMIGCAgEBMAUGAytlcDAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwHhcNMjQwMTAx
MDAwMDAwWhcNMjQwMTMxMDAwMDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwKjAF
BgMrZXADIQD6zpxmrvnfg5vVW3alZ6bGtmxhaYRF6zu5CphjfczC0jAFBgMrZXAD
QQBC25V+OeVpmHyzDaxVuVNCHKOieBgCYC+PqLB4j6Z284VNbwLLpE+HTZjfvGpT
SGWtxm0rEVfMU2yPeO5O55MC
-----END CERTIFICATE-----
`;

describe('files', () => {
  test('doctor finds files that other users may read', async () => {
    const { path } = await createHealthyFile();
    chmodSync(path, 0o644);
    chmodSync(`${path}.key`, 0o640);
    const found = await runDoctorOnFile(path);
    const messages = found.report('files').findings.map(({ says }) => says);
    expect([found.code, messages.sort()]).toEqual([
      1,
      [
        `${path} has mode 0644, so other users can read or write it: run chmod 600`,
        `${path}.key has mode 0640, so other users can read or write it: run chmod 600`,
      ],
    ]);
  });

  test('doctor finds that a file which a setting names does not exist', async () => {
    const path = await createClosedFile();
    const flags = ['database-password-file', 'tls-cert', 'tls-key', 'issuers-file', 'bootstrap-client-file'];
    const environment = Object.fromEntries(
      flags.map((flag) => [`AUTHREALM_${flag.replaceAll('-', '_').toUpperCase()}`, `/nowhere/${flag}`]),
    );
    const { AUTHREALM_DATABASE_PASSWORD_FILE: _, ...others } = environment;
    const found = await runDoctorOnFile(path, others);
    expect([found.code, found.report('files').findings.map(({ says }) => says)]).toEqual([
      1,
      flags.slice(1).map((flag) => `--${flag}: /nowhere/${flag} does not exist`),
    ]);
  });

  test.each([
    ['has expired', EXPIRED, LOCALHOST_KEY, /^the certificate .* expired at 2024-01-31/],
    [
      'belongs to another key',
      LOCALHOST,
      ANOTHER_KEY,
      /^--tls-key is not the key of the certificate of --tls-cert$/,
    ],
    ['is none', LOCALHOST_KEY, LOCALHOST_KEY, /^--tls-cert or --tls-key is no PEM: /],
  ])('doctor finds that the certificate %s', async (_, cert, key, says) => {
    const path = await createClosedFile();
    const folder = freshFolder();
    const [AUTHREALM_TLS_CERT, AUTHREALM_TLS_KEY] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(AUTHREALM_TLS_CERT, cert);
    writeFileSync(AUTHREALM_TLS_KEY, key, { mode: 0o600 });
    const found = await runDoctorOnFile(path, { AUTHREALM_TLS_CERT, AUTHREALM_TLS_KEY });
    expect([found.code, found.report('files').findings.map((finding) => finding.says)]).toEqual([
      1,
      [expect.stringMatching(says)],
    ]);
  });
});

describe('damaged or incomplete installations', () => {
  const checked = (found: DoctorRun) =>
    ['integrity', 'proxies'].filter((name) => found.report(name).unchecked === undefined).length;

  test('doctor without the key file runs the checks that need no key', async () => {
    const { path } = await createHealthyFile();
    renameSync(`${path}.key`, `${path}.key-elsewhere`);
    const found = await runDoctorOnFile(path);
    expect([found.code, checked(found)]).toEqual([1, 2]);
    expect(found.report('files').findings[0]?.says).toContain('is missing');
    expect(found.report('sealed values').unchecked).toContain('is missing');
    expect(await Bun.file(`${path}.key`).exists()).toBe(false);
  });

  test('doctor with another master key runs the checks that need no key', async () => {
    const { path } = await createHealthyFile();
    writeFileSync(`${path}.key`, Buffer.from(systemClock.randomBytes(32)).toString('hex'));
    const found = await runDoctorOnFile(path);
    expect([found.code, checked(found), found.report('sealed values').total]).toEqual([1, 2, 3]);
    expect(found.report('master key').findings[0]?.says).toMatch(
      /^key [0-9a-f]{16} is not the configured master key/,
    );
  });

  test('doctor of a newer schema reports each check that the schema prevents', async () => {
    const { path } = await createHealthyFile();
    tamperFile(path, (db) => {
      db.run(
        `insert into migration (version, name, applied_at, program_version, serves_from) values (900, 'later', 1, '9.9.9', 900)`,
      );
      db.run('drop table client_realm');
    });
    const found = await runDoctorOnFile(path);
    expect([found.code, found.report('integrity').unchecked]).toEqual([1, undefined]);
    expect(found.report('clients').unchecked).toContain('client_realm');
  });

  for (const [where, damage] of [
    ['in its header', (path: string) => overwrite(path, 0, 100)],
    ['in the middle', (path: string) => overwrite(path, Math.floor(statSync(path).size / 2), 40_000)],
    ['at its end', (path: string) => truncateSync(path, statSync(path).size - 20_000)],
    ['completely', (path: string) => writeFileSync(path, 'this is no database at all'.repeat(100))],
  ] as const) {
    test(`doctor finds a database file that is damaged ${where}`, async () => {
      const path = await createClosedFile();
      expect((await runDoctorOnFile(path)).code).toBe(0);
      damage(path);
      const found = await runDoctorOnFile(path);
      expect(found.code).toBe(1);
      expect(found.text).not.toMatch(/\.ts:\d|at async/);
      // A file that cannot be opened has no further checks.
      const { total, unchecked } = found.report('integrity') ?? found.report('program');
      expect(total > 0 || unchecked !== undefined).toBe(true);
    });
  }

  test('doctor reads a database in a folder without write permission', async () => {
    const path = await createClosedFile();
    chmodSync(dirname(path), 0o555);
    const command = [...AUTHREALM_UNPRIVILEGED, 'doctor', '--json', '--database', `sqlite:${path}`];
    const { stdout, code } = await runCommand(command);
    const { checks } = JSON.parse(stdout) as { checks: CheckReport[] };
    expect([code, checks.filter(({ unchecked }) => unchecked !== undefined)]).toEqual([0, []]);
    expect(stdout).toContain('read as an immutable file');
    chmodSync(dirname(path), 0o755);
  });

  test('doctor reports a missing database and does not create it', async () => {
    const path = join(freshFolder(), 'none.db');
    const found = await runDoctorOnFile(path);
    const reason = expect.stringContaining('there is no database');
    expect([found.code, found.unhealthy, found.report('program').unchecked]).toEqual([
      1,
      ['program'],
      reason,
    ]);
    expect(found.report('integrity')).toBeUndefined();
    expect(await Bun.file(path).exists()).toBe(false);
  });
});

function overwrite(path: string, at: number, bytes: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(bytes, 0xa5), 0, bytes, at);
  closeSync(file);
}

test('doctor finds a database healthy during writes, and blocks no writer', async () => {
  const { path } = await createHealthyFile();
  const settings = readSettings({ database: `sqlite:${path}` }, {});
  const db = await openDatabase(settings, systemClock);
  const child = startCommand([AUTHREALM, 'doctor', '--json', '--database', `sqlite:${path}`]);
  let isDone = false;
  void child.process.exited.then(() => {
    isDone = true;
  });
  let writes = 0;
  while (!isDone) {
    // Rejects when it waits for longer than `storeWaitMsMax`.
    await createFixture(db);
    writes += 1;
  }
  expect(await child.process.exited).toBe(0);
  expect(writes).toBeGreaterThan(1);
  db.engine.close();
}, 300_000);
