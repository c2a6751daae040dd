import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resumeChain } from '../../src/audit/chain.ts';
import { obtainLogKeys } from '../../src/audit/log_secret.ts';
import { readSettings } from '../../src/config/parse.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import type { Migration } from '../../src/store/migrations.ts';
import { openEngine } from '../../src/store/open.ts';
import { connectSqlite } from '../../src/store/sqlite/connection.ts';
import { migrateSqlite } from '../../src/store/sqlite/migrate.ts';
import { sqliteMigrations } from '../../src/store/sqlite/open.ts';
import { sqliteAt } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { serveWith, USERS } from '../support/release_service.ts';
import { RELEASES, unpackRelease } from '../support/release_tree.ts';

/** Programs of a release serve the schema of a later release as long as it was only expanded. */

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
});

describe.each(RELEASES)('release %s', (release) => {
  test('an older release passes its own lookup suite when the schema is migrated under it', async () => {
    const { stdout, counts } = await runLookupSuiteDuringUpgrade(await unpackRelease(release));
    expect([counts, stdout]).toEqual([PASSED, expect.stringContaining(`schema ${nextVersion}\n`)]);
  });

  test('an older release serves without a failure while the next release migrates', async () => {
    const authrealm = join(await unpackRelease(release), 'bin', 'authrealm');
    const old = await serveWith(authrealm);
    const lookups = old.lookUpUntilEnd();
    const { stdout, stderr, code } = await runCommand([process.execPath, NEXT_RELEASE_SCRIPT, old.database]);
    expect({ stdout, stderr, code }).toEqual({ stdout: `schema ${nextVersion}\n`, stderr: '', code: 0 });
    const found = lookups.found();
    while (lookups.found() < found + 50) await Bun.sleep(100);
    const statuses = await lookups.end();
    expect([...statuses.keys()]).toEqual([200]);
    expect(await old.write()).toEqual([201, 201, 200, 204, 404]);
    expect(await old.running.stop()).toBe(0);
  });
});

describe('release 0.1.0, which has no audit log', () => {
  test('concurrent writes of release 0.1.0 enter the chain with the next write of this release', async () => {
    const old = await serveWith(join(await unpackRelease('0.1.0'), 'bin', 'authrealm'));
    let isOver = false;
    const statuses: (readonly number[])[] = [];
    const writing = (async () => {
      while (!isOver) statuses.push(await old.write());
    })();
    const own = await serveWith(AUTHREALM, old.filled);
    const results: (readonly number[])[] = [];
    while (Math.min(results.length, statuses.length) < CONCURRENT_ROUNDS) results.push(await own.write());
    isOver = true;
    const rounds = results.length;
    await writing;
    results.push(...statuses, await own.write());
    expect(new Set(results.map(String))).toEqual(new Set(['201,201,200,204,404']));
    expect([await own.running.stop(), await old.running.stop()]).toEqual([0, 0]);

    const db = await openDatabase(readSettings({ database: old.database }, {}), systemClock);
    const keys = await obtainLogKeys(db.engine.access, db.keyring, systemClock);
    const { realm } = old.filled.ids;
    const { chain, seq } = (await db.engine.log.head(realm)) ?? {};
    if (!chain) throw new Error('the log has no chain');
    const { end, anchor } = chain;
    expect(end.seq).toBe(seq ?? 0);
    const entries = await db.engine.log.entries(realm, anchor.seq, end.seq);
    const recomputed = resumeChain(keys, anchor);
    for (const { seq, columns, tag } of entries) {
      expect([seq, tag && Buffer.from(tag).toString('hex')]).toEqual([
        seq,
        Buffer.from(recomputed.next(seq, Object.values(columns))).toString('hex'),
      ]);
    }
    expect([recomputed.seq, recomputed.entries, recomputed.entries]).toEqual([
      end.seq,
      end.entries,
      end.seq - anchor.seq,
    ]);
    const made = entries.filter(({ columns }) => String(columns.event).endsWith('.created'));
    const byHasDetail = Map.groupBy(made, ({ columns }) => columns.detail !== null);
    expect([
      byHasDetail.get(true)?.length,
      (byHasDetail.get(false)?.length ?? 0) > CONCURRENT_ROUNDS,
    ]).toEqual([2 * (rounds + 1), true]);
    await db.engine.close();
  });

  test('totals include what release 0.1.0 wrote, and are stored again from the next start of this release', async () => {
    const old = await serveWith(join(await unpackRelease('0.1.0'), 'bin', 'authrealm'));
    let own = await serveWith(AUTHREALM, old.filled);
    const totals = async () => {
      const [clock] = await sqliteAt(old.database.slice('sqlite:'.length)).query<{
        uncounted: number;
        users: number;
      }>(
        `select seq - counted_seq as uncounted, user_info_count as users
         from realm_clock where realm_id = ?`,
        old.filled.ids.realm,
      );
      return { total: await own.totalOfUsers(), ...clock };
    };
    expect(await totals()).toEqual({ total: USERS, uncounted: 0, users: USERS });
    expect((await old.createUser()).status).toBe(201);
    expect(await totals()).toEqual({ total: USERS + 1, uncounted: 1, users: USERS });
    expect((await own.createUser()).status).toBe(201);
    // A counted total is reused for that long.
    await Bun.sleep(LIMITS.totalAgeMsMax + 1);
    expect(await totals()).toEqual({ total: USERS + 2, uncounted: 1, users: USERS + 1 });
    expect([await own.running.stop(), await old.running.stop()]).toEqual([0, 0]);
    own = await serveWith(AUTHREALM, old.filled);
    expect(await totals()).toEqual({ total: USERS + 2, uncounted: 0, users: USERS + 2 });
    expect(await own.running.stop()).toBe(0);
  });
});

const CONCURRENT_ROUNDS = 20;

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
    // As release 0.1.0 left it, without the column about older programs.
    db.run('alter table migration drop column serves_from');
    await migrateSqlite(db, 'auto', [...known, ...more], { ...program, version });
    db.close();
    return path;
  }

  test('a file whose schema was only expanded is served in every mode, without a changed byte', async () => {
    const path = await createUpgraded('0.2.0', expanding);
    const before = readFileSync(path);
    for (const mode of ['auto', 'check', 'off'] as const) {
      const engine = await openEngine({ engine: 'sqlite', path }, mode, program);
      expect(await engine.access.storeId()).not.toBe('');
      engine.close();
    }
    expect(readFileSync(path).equals(before)).toBe(true);
    const db = connectSqlite(path);
    expect(db.prepare('select version, serves_from from migration order by version').all()).toEqual([
      ...known.map(({ version }) => ({ version, serves_from: null })),
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
