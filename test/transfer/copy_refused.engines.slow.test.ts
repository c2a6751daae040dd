import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { realm } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { CopyTarget, Installation } from '../../src/store/copying/port.ts';
import { openPostgresTarget } from '../../src/store/copying/postgres.ts';
import { openSqliteSource, openSqliteTarget } from '../../src/store/copying/sqlite.ts';
import { TABLES } from '../../src/store/copying/tables.ts';
import { unfinishedCopyOf } from '../../src/store/copying/unfinished_copy.ts';
import {
  allRows,
  type Engine,
  freshDatabaseOf,
  newMasterKey,
  runCopy,
  runCopyPrepare,
  startCopyService,
} from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { manyUserLines, runImport } from '../support/import_fixtures.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';
import { freshFolder, insertRecord, realmMembers } from '../support/service.ts';

/** What `authrealm copy` will not do: it says why and what to do, and leaves the target as it is. */

setDefaultTimeout(300_000);

const key = newMasterKey();
const ENGINES = ['sqlite', 'postgres'] as const;

/** A database with a realm in it. */
async function inhabited(engine: Engine): Promise<TestDatabase> {
  const database = await freshDatabaseOf(engine, key);
  const service = await startCopyService(database);
  await insertRecord(service.db, realm, [systemClock.mintId()], realmMembers);
  await service.stop();
  return database;
}

async function refused(from: { readonly url: string }, to: { readonly url: string }): Promise<string> {
  const { stdout, stderr, code } = await runCopy(from, to);
  expect([code, stdout.includes('equal;')]).toEqual([1, false]);
  return stderr;
}

const PROGRAM = { version: 'test', clock: systemClock };

function pathOf({ url }: TestDatabase): string {
  return url.slice('sqlite:'.length);
}

function openTarget(database: TestDatabase): Promise<CopyTarget> {
  const { address } = database;
  return address.engine === 'postgres'
    ? openPostgresTarget(address, PROGRAM)
    : openSqliteTarget(pathOf(database), PROGRAM);
}

describe.each(ENGINES)('%s', (engine) => {
  test('is not copied onto itself', async () => {
    const database = await inhabited(engine);
    const before = await allRows(database);
    expect(await refused(database, database)).toContain('are one database: name two');
    expect(await allRows(database)).toEqual(before);
  });

  test('is no target where another installation is in it', async () => {
    const [source, target] = [await inhabited('sqlite'), await inhabited(engine)];
    const before = await allRows(target);
    expect(await refused(source, target)).toContain('the target is not empty');
    expect(await allRows(target)).toEqual(before);
  });

  test('is no target while the copy of another installation into it has not ended', async () => {
    const [source, target] = [await inhabited('sqlite'), await inhabited(engine)];
    await target.tamper(`update instance set store_id = 'unfinished copy of another'`);
    expect(await refused(source, target)).toContain('unfinished copy of another installation');
  });

  test('is no source before a copy into it has ended', async () => {
    const [source, target] = [await inhabited(engine), await freshDatabaseOf('sqlite', key)];
    await source.tamper(`update instance set store_id = 'unfinished copy of another'`);
    expect(await refused(source, target)).toContain('is itself an unfinished copy');
    expect(existsSync(target.url.slice('sqlite:'.length))).toBe(false);
  });

  test('is no target once a copy into it is complete', async () => {
    const [source, target] = [await inhabited('sqlite'), await freshDatabaseOf(engine, key)];
    expect((await runCopy(source, target)).code).toBe(0);
    await writeRealm(target);
    const before = await allRows(target);
    expect(await refused(source, target)).toContain('the target is not empty');
    expect(await allRows(target)).toEqual(before);
  });

  test('is not served while it is only prepared', async () => {
    const [source, target] = [await inhabited('sqlite'), await freshDatabaseOf(engine, key)];
    const { stdout, code } = await runCopyPrepare(source, target);
    expect([code, stdout]).toEqual([0, expect.stringContaining('same command without --prepare')]);
    const served = await runCommand([AUTHREALM, 'serve', '--port', '0', ...target.args]);
    expect([served.code, served.stderr]).toEqual([1, expect.stringContaining('without --prepare')]);
    expect((await runCopy(source, target)).code).toBe(0);
    expect(await allRows(target)).toEqual(await allRows(source));
  });

  test('takes no row of a copy once another one into it has begun', async () => {
    const source = await openSqliteSource(pathOf(await inhabited('sqlite')), PROGRAM);
    const target = await openTarget(await freshDatabaseOf(engine, key));
    const [realms] = TABLES.filter(({ name }) => name === realm.table);
    if (!realms) throw new Error('no table of realms');
    const rows = await source.rows(realms, { after: undefined, to: undefined });
    const found = await target.installation();
    const marks = ['first', 'second'].map((run) => ({ ...found, storeId: unfinishedCopyOf('x', run) }));
    const [first, second] = marks as [Installation, Installation];
    expect(await target.replaceInstallation(found, first)).toBe(true);
    await target.put({ table: realms, rows, mark: first.storeId });
    expect(await target.replaceInstallation(first, second)).toBe(true);
    const late = { table: realms, rows, mark: first.storeId };
    for (const write of [() => target.put(late), () => target.remove(late)])
      expect(write).toThrow('another copy into it has begun');
    expect(await target.replaceInstallation(first, found)).toBe(false);
    expect(await target.count(realms)).toBe(1);
    await Promise.all([source.close(), target.close()]);
  });

  test('ends right where two are copied into it at once', async () => {
    const [source, other] = [await inhabited('sqlite'), await inhabited('sqlite')];
    const target = await freshDatabaseOf(engine, key);
    const ended = await Promise.all([
      runCopy(source, target),
      runCopy(other, target),
      runCopy(source, target),
    ]);
    const isDone = ended.map(({ code }) => code === 0);
    // Neither is copied over the other.
    expect(isDone[1] && (isDone[0] || isDone[2])).toBe(false);
    for (const [at, from] of [source, other, source].entries()) {
      if (isDone[at]) expect(await allRows(target)).toEqual(await allRows(from));
    }
  });

  test.each([
    ['older', 0, 'bring it up first, by authrealm migrate'],
    ['newer', 99, 'install authrealm'],
  ])('is neither source nor target with an %s schema', async (_, version, says) => {
    const [own, other] = [await inhabited(engine), await inhabited('sqlite')];
    await own.tamper('delete from migration where version > 1');
    await own.tamper(`update migration set version = ${version}`);
    const before = await allRows(own);
    expect(await refused(own, await freshDatabaseOf('sqlite', key))).toContain(says);
    expect(await refused(other, own)).toContain(says);
    expect(await allRows(own)).toEqual(before);
  });

  test('is a source only where there is a database', async () => {
    const [source, target] = [await freshDatabaseOf(engine, key), await freshDatabaseOf('sqlite', key)];
    expect(await refused(source, target)).toMatch(/^authrealm: the source .*there is no database/);
    expect(existsSync(target.url.slice('sqlite:'.length))).toBe(false);
  });
});

test.each(ENGINES)(
  'a service that runs on %s answers 503 while a copy into its database has not ended',
  async (engine) => {
    const database = await freshDatabaseOf(engine, key);
    const service = await startCopyService(database);
    const token = await service.token('realms:read');
    const path = '/v2/authentication-realms';
    expect((await service.get(path, token)).status).toBe(200);
    await database.tamper(`update instance set store_id = 'unfinished copy of ' || store_id`);
    service.clock.advance(1_000);
    expect((await service.get(path, token)).status).toBe(503);
    expect((await service.get('/readyz')).status).toBe(503);
    await database.tamper(
      `update instance set store_id = substr(store_id, length('unfinished copy of ') + 1)`,
    );
    expect((await service.get(path, token)).status).toBe(200);
    await service.stop();
  },
);

async function writeRealm(database: TestDatabase): Promise<void> {
  const service = await startCopyService(database);
  await insertRecord(service.db, realm, [systemClock.mintId()], realmMembers);
  await service.stop();
}

describe('a URL', () => {
  test.each(['mysql://user:geheim@host/database', 'postgres://user:geheim@:x/database', 'sqlite::memory:'])(
    'that names no database to copy is not repeated: %s',
    async (url) => {
      const there = await freshDatabaseOf('sqlite', key);
      for (const [from, to] of [
        [there.url, url],
        [url, there.url],
      ] as const) {
        const { stderr, stdout, code } = await runCopy({ url: from }, { url: to });
        expect([code, stdout]).toEqual([2, '']);
        expect(stderr).toMatch(/^authrealm: --(from|to)\b/);
        expect(stderr).not.toContain('geheim');
      }
    },
  );

  test('is asked for on both sides', async () => {
    const { stderr, code } = await runCommand([AUTHREALM, 'copy', '--from', 'sqlite:here.db']);
    expect([code, stderr.includes('--to')]).toEqual([2, true]);
  });

  test('may stand in the environment', async () => {
    const [source, target] = [await inhabited('sqlite'), await freshDatabaseOf('sqlite', key)];
    const environment = { AUTHREALM_COPY_FROM: source.url, AUTHREALM_COPY_TO: target.url };
    const { stderr, code } = await runCommand([AUTHREALM, 'copy'], environment);
    expect([code, stderr]).toEqual([0, '']);
  });
});

test('a database of another program is neither', async () => {
  const [source, path] = [await inhabited('sqlite'), join(freshFolder(), 'notes.txt')];
  writeFileSync(path, 'these are notes, and no database of any kind');
  expect(await refused(source, { url: `sqlite:${path}` })).toContain('is no SQLite database');
  expect(await refused({ url: `sqlite:${path}` }, await freshDatabaseOf('sqlite', key))).toContain(
    'is no SQLite database',
  );
});

test('a folder that is not there is named', async () => {
  const nowhere = join(freshFolder(), 'not', 'there.db');
  expect(await refused(await inhabited('sqlite'), { url: `sqlite:${nowhere}` })).toContain(
    'there is no folder',
  );
  const folder = join(freshFolder(), 'folder');
  mkdirSync(folder);
  expect(await refused(await inhabited('sqlite'), { url: `sqlite:${folder}` })).toContain('the target');
});

test('a role that may not write is told so, and a server that is not there', async () => {
  const [source, target] = [await inhabited('sqlite'), await freshDatabaseOf('postgres', key)];
  const name = `reader_${systemClock.mintId().replaceAll('-', '')}`;
  await target.query(`create role ${name} login password 'geheim'`);
  const url = new URL(target.url);
  url.username = name;
  url.password = 'geheim';
  const shown = await runCopy(source, { url: url.href });
  expect([shown.code, shown.stderr.includes('geheim')]).toEqual([2, false]);
  expect(shown.stderr).toContain('give --to-password-file FILE, or the URL in AUTHREALM_COPY_TO');
  const hidden = await runCommand([AUTHREALM, 'copy', '--from', source.url], { AUTHREALM_COPY_TO: url.href });
  expect(hidden.stderr).toStartWith('authrealm: the target ');
  url.password = '';
  const passwordFile = join(freshFolder(), 'password');
  const asked = () =>
    runCommand([
      ...[AUTHREALM, 'copy', '--from', source.url, '--to', url.href],
      ...['--to-password-file', passwordFile],
    ]);
  writeFileSync(passwordFile, 'another');
  const wrong = await asked();
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining('give it by --to-password-file FILE'),
  ]);
  expect(wrong.stderr).toContain('in the URL of AUTHREALM_COPY_TO');
  writeFileSync(passwordFile, 'geheim');
  const { stderr: said } = await asked();
  expect(said).toStartWith('authrealm: the target ');
  expect(said).toContain(name);
  expect(said).not.toContain('geheim');
  const { port } = await sharedServer();
  const gone = await refused(source, { url: target.url.replace(`:${port}`, ':1') });
  expect(gone).toStartWith('authrealm: the target: ');
});

test('where the disk is full it ends, and goes on once there is room', async () => {
  const [source, target] = [await freshDatabaseOf('sqlite', key), await freshDatabaseOf('sqlite', key)];
  const service = await startCopyService(source);
  await runImport(service.db, manyUserLines(3_000), { pieceBytes: 65_536 });
  await service.stop();
  // No file of the process may become longer than this.
  const bounded = `ulimit -f 1024; trap '' XFSZ; exec "$0" "$@"`;
  const command = ['sh', '-c', bounded, AUTHREALM, 'copy', '--from', source.url, '--to', target.url];
  const { stderr, code } = await runCommand(command);
  expect([code, stderr.startsWith('authrealm: the target ')]).toEqual([1, true]);
  expect(await allRows(target)).not.toEqual(await allRows(source));
  expect((await runCopy(source, target)).code).toBe(0);
  expect(await allRows(target)).toEqual(await allRows(source));
});
