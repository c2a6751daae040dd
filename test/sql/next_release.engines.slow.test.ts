import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { sqliteMigrations } from '../../src/ops/store/sqlite/open.ts';
import type { Migration } from '../../src/sql/migrations.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { migrateSqlite } from '../../src/sql/sqlite/migrate.ts';
import { createBackupFixture, runOnFile } from '../support/backup_fixtures.ts';
import { createSqlite } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { createNextProgram } from '../support/next_program.ts';
import { AUTHREALM, runCommand, startCommand, urlOf } from '../support/processes.ts';
import { createFixture, databaseFile, oidcPath, startService } from '../support/service.ts';
import { type ClientSecret, requestToken } from '../support/token_request.ts';

/** The next release: programs of this one serve its schema as long as it was only expanded, and what an upgrade keeps. */

setDefaultTimeout(300_000);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Migrates a database to the schema of the next release. */
const NEXT_RELEASE_SCRIPT = join(import.meta.dir, 'contract/next_release.ts');
const UPGRADE_PRELOAD = join(import.meta.dir, 'contract/upgrade_preload.ts');

const known = sqliteMigrations();
const nextVersion = known.length + 1;
const program = { version: '0.1.0', clock: systemClock };

/** Runs the lookup suite of a source tree, unchanged. */
async function runLookupSuite(
  tree: string,
  environment: Readonly<Record<string, string>>,
  ...args: string[]
) {
  const [suite = ''] = new Bun.Glob('test/**/lookup.test.ts').scanSync(tree);
  const child = Bun.spawn([process.execPath, 'test', '--timeout=200000', ...args, suite], {
    cwd: tree,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(stderr);
  return { stdout, counts: [...stderr.matchAll(/^ *\d+ (?:pass|fail)$/gm)].map(([line]) => line.trim()) };
}

/** Runs it on SQLite, and migrates the schema between the start of its service and its first test. */
function runLookupSuiteDuringUpgrade(tree: string) {
  return runLookupSuite(
    tree,
    {
      AUTHREALM_TEST_ENGINE: 'sqlite',
      AUTHREALM_TEST_UPGRADE_SCRIPT: NEXT_RELEASE_SCRIPT,
      // The preload script looks for the database file here.
      TMPDIR: freshFolder(),
    },
    '--preload',
    UPGRADE_PRELOAD,
  );
}

const PASSED = ['3 pass', '0 fail'];

describe('this release', () => {
  test.each(['sqlite', 'postgres'])(
    'this release starts on the next schema and passes its lookup suite: %s',
    async (engine) => {
      const environment = { AUTHREALM_TEST_ENGINE: engine, AUTHREALM_TEST_UPGRADE: NEXT_RELEASE_SCRIPT };
      expect((await runLookupSuite(ROOT, environment)).counts).toEqual(PASSED);
    },
  );

  test('this release passes its lookup suite when the schema is migrated under it', async () => {
    const { stdout, counts } = await runLookupSuiteDuringUpgrade(ROOT);
    expect([counts, stdout]).toEqual([PASSED, expect.stringContaining(`schema ${nextVersion}\n`)]);
  });

  test('this release serves without a failure while the next release migrates, and writes afterwards', async () => {
    const service = await startService();
    const fixture = await createFixture(service.db);
    const [token, path] = [await service.token('profile-infos:read profile-infos:write'), oidcPath(fixture)];
    const statuses: number[] = [];
    let isOver = false;
    const reading = (async () => {
      while (!isOver) statuses.push((await service.get(path, token)).status);
    })();
    const migration = [process.execPath, NEXT_RELEASE_SCRIPT, `sqlite:${databaseFile(service)}`];
    expect(await runCommand(migration)).toEqual({ stdout: `schema ${nextVersion}\n`, stderr: '', code: 0 });
    isOver = true;
    await reading;
    expect([statuses.length > 50, new Set(statuses)]).toEqual([true, new Set([200])]);
    expect((await service.del(path, token)).status).toBe(204);
    expect((await service.get(path, token)).status).toBe(404);
  });
});

describe('an upgrade', () => {
  const next = createNextProgram('create table of_next (id text) strict;');

  /** Starts a service of a program, which must grant a token to this client, and stops it. */
  async function grantBy(command: string, path: string, client: ClientSecret): Promise<string> {
    const service = startCommand([command, 'serve', '--port', '0', '--database', `sqlite:${path}`]);
    const token = await requestToken(await urlOf(service), client);
    expect(await service.stop()).toBe(0);
    return token;
  }

  test('the next release serves a database of this one, which serves the copy of before the upgrade again', async () => {
    const path = join(freshFolder(), 'upgraded.db');
    await createSqlite(path);
    const create = await runOnFile(
      path,
      'client',
      'create',
      '--name',
      'n',
      '--scope',
      'users:read',
      '--json',
    );
    const client: ClientSecret = JSON.parse(create.stdout);
    expect(await grantBy(next, path, client)).not.toBe('');
    const refused = await runOnFile(path, 'serve', '--port', '0');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`has schema ${nextVersion}`)]);
    // UPGRADING.md, "How to go back".
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true });
    renameSync(`${path}.schema-${known.length}`, path);
    expect(await grantBy(AUTHREALM, path, client)).not.toBe('');
  });

  test('the next release restores a backup of this one, which is then migrated and healthy', async () => {
    const { path, backup } = await createBackupFixture();
    const database = ['--database', `sqlite:${path}`];
    const restore = [next, 'restore', backup, '--replace', '--yes', ...database];
    expect(await runCommand(restore)).toMatchObject({ stderr: '', code: 0 });
    const doctor = await runCommand([next, 'doctor', ...database]);
    expect([doctor.code, doctor.stdout]).toEqual([0, expect.stringMatching(/^healthy\n/)]);
  });
});

describe('a SQLite file with a newer schema', () => {
  const expanding: Migration = {
    version: nextVersion,
    name: 'next',
    sql: `-- serves: ${known.length}\nalter table realm add column motto text; create table later (id text) strict;`,
  };

  /** A database that a later release has migrated with these migrations. */
  async function createUpgraded(version: string, ...more: readonly Migration[]): Promise<string> {
    const path = join(freshFolder(), 'later.db');
    (await openEngine({ engine: 'sqlite', path }, 'auto', program)).close();
    const db = connectSqlite(path);
    await migrateSqlite(db, 'auto', [...known, ...more], { ...program, version });
    db.close();
    return path;
  }

  test('a file whose schema was only expanded is served in every mode, without a changed byte', async () => {
    const path = await createUpgraded('0.2.0', expanding);
    const before = readFileSync(path);
    for (const mode of ['auto', 'check'] as const) {
      const engine = await openEngine({ engine: 'sqlite', path }, mode, program);
      expect(await engine.access.storeId()).not.toBe('');
      engine.close();
    }
    expect(readFileSync(path).equals(before)).toBe(true);
    const db = connectSqlite(path);
    expect(db.prepare('select version, serves_from from migration order by version').all()).toEqual([
      ...known.map(({ version }) => ({ version, serves_from: version })),
      { version: nextVersion, serves_from: known.length },
    ]);
    db.close();
  });

  test('a file whose schema was contracted is refused, also after a later expansion', async () => {
    const contracting = { version: nextVersion + 1, name: 'contracted', sql: 'drop table later;' };
    const again = {
      version: nextVersion + 2,
      name: 'again',
      sql: `-- serves: ${nextVersion + 1}\ncreate table again (id text) strict;`,
    };
    const path = await createUpgraded('0.4.0', expanding, contracting, again);
    await expect(openEngine({ engine: 'sqlite', path }, 'auto', program)).rejects.toThrow(
      `has schema ${nextVersion + 2}, created by authrealm 0.4.0`,
    );
  });
});
