import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { realm } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { openEngine } from '../../../src/ops/store/open.ts';
import { isCitusEngine } from '../../support/citus_cluster.ts';
import {
  allRows,
  type Engine,
  freshDatabaseOf,
  isEmptyTarget,
  newMasterKey,
  runCopy,
  SERVER_ENGINE,
  startCopyService,
} from '../../support/copy_fixtures.ts';
import type { TestDatabase } from '../../support/database.ts';
import { manyUserLines, runImport } from '../../support/import_fixtures.ts';
import { AUTHREALM, runCommand } from '../../support/processes.ts';
import { freshFolder, insertRecord, realmMembers } from '../../support/service.ts';

/** Refusals of `authrealm copy`: it prints why and what to do, and leaves the target unchanged. */

setDefaultTimeout(300_000);

const key = newMasterKey();
const ENGINES: readonly Engine[] = isCitusEngine ? ['citus'] : ['sqlite', 'postgres'];

/** A database with a realm in it. */
async function createWithRealm(engine: Engine): Promise<TestDatabase> {
  const database = await freshDatabaseOf(engine, key);
  const service = await startCopyService(database);
  await insertRecord(service.db, realm, [systemClock.mintId()], realmMembers);
  await service.stop();
  return database;
}

async function refusalOfCopy(from: { readonly url: string }, to: { readonly url: string }): Promise<string> {
  const { stdout, stderr, code } = await runCopy(from, to);
  expect([code, stdout.includes('equal')]).toEqual([1, false]);
  return stderr;
}

describe.each(ENGINES)('a refused copy on %s', (engine) => {
  test('a database is not copied onto itself', async () => {
    const database = await createWithRealm(engine);
    const before = await allRows(database);
    expect(await refusalOfCopy(database, database)).toContain('the target is not empty');
    expect(await allRows(database)).toEqual(before);
  });

  test('a database with another installation is refused as a target', async () => {
    const [source, target] = [await createWithRealm('sqlite'), await createWithRealm(engine)];
    const before = await allRows(target);
    expect(await refusalOfCopy(source, target)).toContain('the target is not empty');
    expect(await allRows(target)).toEqual(before);
  });

  test('a database with a completed copy is refused as a target', async () => {
    const [source, target] = [await createWithRealm('sqlite'), await freshDatabaseOf(engine, key)];
    expect((await runCopy(source, target)).code).toBe(0);
    await writeRealm(target);
    const before = await allRows(target);
    expect(await refusalOfCopy(source, target)).toContain('the target is not empty');
    expect(await allRows(target)).toEqual(before);
  });

  test('a source with rows of a realm without a clock is refused', async () => {
    const [source, target] = [await createWithRealm('sqlite'), await freshDatabaseOf(engine, key)];
    await source.tamper(`insert into user_salt (realm_id, user_id, salt) values (4711, x'00', x'00')`);
    expect(await refusalOfCopy(source, target)).toContain('table user_salt has rows');
    expect(await isEmptyTarget(target)).toBe(true);
  });

  test('concurrent copies of two sources into one target never mix', async () => {
    const [source, other] = [await createWithRealm('sqlite'), await createWithRealm('sqlite')];
    const target = await freshDatabaseOf(engine, key);
    const results = await Promise.all([
      runCopy(source, target),
      runCopy(other, target),
      runCopy(source, target),
    ]);
    const isDone = results.map(({ code }) => code === 0);
    expect(isDone.filter(Boolean)).toHaveLength(1);
    for (const [at, from] of [source, other, source].entries()) {
      if (isDone[at]) expect(await allRows(target)).toEqual(await allRows(from));
    }
  });

  test.each([
    ['older', 0, 'but this program needs'],
    ['newer', 99, 'install authrealm'],
  ])('a database with an %s schema is refused as a source and as a target', async (_, version, message) => {
    const [own, other] = [await createWithRealm(engine), await createWithRealm('sqlite')];
    await own.tamper(`update migration set version = ${version}, serves_from = ${version}`);
    const before = await allRows(own);
    expect(await refusalOfCopy(own, await freshDatabaseOf('sqlite', key))).toContain(message);
    expect(await refusalOfCopy(other, own)).toContain(message);
    expect(await allRows(own)).toEqual(before);
  });

  test('a missing database is refused as a source', async () => {
    const [source, target] = [await freshDatabaseOf(engine, key), await freshDatabaseOf('sqlite', key)];
    expect(await refusalOfCopy(source, target)).toMatch(/^authrealm: the source .*there is no database/);
    expect(existsSync(target.url.slice('sqlite:'.length))).toBe(false);
  });
});

test('a copy into a target that changes rows is refused, and leaves the target empty', async () => {
  const [source, target] = [await createWithRealm('sqlite'), await freshDatabaseOf('sqlite', key)];
  await (await openEngine(target.address, 'auto', { version: 'test', clock: systemClock })).close();
  await target.tamper(`create trigger loud after insert on realm begin
    update realm set name = name || '!' where slot = new.slot; end`);
  expect(await refusalOfCopy(source, target)).toContain('table realm of the target differs from the source');
  expect(await isEmptyTarget(target)).toBe(true);
});

async function writeRealm(database: TestDatabase): Promise<void> {
  const service = await startCopyService(database);
  await insertRecord(service.db, realm, [systemClock.mintId()], realmMembers);
  await service.stop();
}

describe('the URLs of a copy', () => {
  test.each(['mysql://user:geheim@host/database', 'postgres://user:geheim@:x/database', 'sqlite::memory:'])(
    'an unusable URL is refused without repeating it: %s',
    async (url) => {
      const existing = await freshDatabaseOf('sqlite', key);
      for (const [from, to] of [
        [existing.url, url],
        [url, existing.url],
      ] as const) {
        const { stderr, stdout, code } = await runCopy({ url: from }, { url: to });
        expect([code, stdout]).toEqual([2, '']);
        expect(stderr).toMatch(/^authrealm: --(from|to)\b/);
        expect(stderr).not.toContain('geheim');
      }
    },
  );

  test('a copy requires --from and --to', async () => {
    const { stderr, code } = await runCommand([AUTHREALM, 'copy', '--from', 'sqlite:here.db']);
    expect([code, stderr.includes('--to')]).toEqual([2, true]);
  });
});

test('a file that is not a database is refused as a source and as a target', async () => {
  const [source, path] = [await createWithRealm('sqlite'), join(freshFolder(), 'notes.txt')];
  writeFileSync(path, 'these are notes, and no database of any kind');
  expect(await refusalOfCopy(source, { url: `sqlite:${path}` })).toContain('is not a SQLite database');
  expect(await refusalOfCopy({ url: `sqlite:${path}` }, await freshDatabaseOf('sqlite', key))).toContain(
    'is not a SQLite database',
  );
});

test('a target in a missing folder, or that is a folder, is refused', async () => {
  const missing = join(freshFolder(), 'not', 'there.db');
  expect(await refusalOfCopy(await createWithRealm('sqlite'), { url: `sqlite:${missing}` })).toContain(
    'does not exist: create it',
  );
  const folder = join(freshFolder(), 'folder');
  mkdirSync(folder);
  expect(await refusalOfCopy(await createWithRealm('sqlite'), { url: `sqlite:${folder}` })).toContain(
    'the target',
  );
});

test('a role without privileges and an unreachable server are refused, without printing the password', async () => {
  const [source, target] = [await createWithRealm('sqlite'), await freshDatabaseOf(SERVER_ENGINE, key)];
  const name = `reader_${systemClock.mintId().replaceAll('-', '')}`;
  await target.query(`create role ${name} login password 'geheim'`);
  const url = new URL(target.url);
  url.username = name;
  url.password = 'geheim';
  const shown = await runCopy(source, { url: url.href });
  expect([shown.code, shown.stderr.includes('geheim')]).toEqual([2, false]);
  expect(shown.stderr).toContain('pass --to-password-file FILE\n');
  url.password = '';
  const passwordFile = join(freshFolder(), 'password');
  const copyWithPasswordFile = () =>
    runCommand([
      ...[AUTHREALM, 'copy', '--from', source.url, '--to', url.href],
      ...['--to-password-file', passwordFile],
    ]);
  writeFileSync(passwordFile, 'another');
  const wrong = await copyWithPasswordFile();
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining('pass it with --to-password-file FILE'),
  ]);
  writeFileSync(passwordFile, 'geheim');
  const { stderr: message } = await copyWithPasswordFile();
  expect(message).toStartWith('authrealm: the target ');
  expect(message).toContain(name);
  expect(message).not.toContain('geheim');
  const { port } = new URL(target.url);
  const unreachable = await refusalOfCopy(source, { url: target.url.replace(`:${port}`, ':1') });
  expect(unreachable).toStartWith('authrealm: the target: ');
});

test('a copy to a full disk leaves the target empty, and works once there is space', async () => {
  const [source, target] = [await freshDatabaseOf('sqlite', key), await freshDatabaseOf('sqlite', key)];
  const service = await startCopyService(source);
  await runImport(service.db, manyUserLines(3_000), { pieceBytes: 65_536 });
  await service.stop();
  // The maximum size of the files that the process writes.
  const limited = `ulimit -f 1024; trap '' XFSZ; exec "$0" "$@"`;
  const command = ['sh', '-c', limited, AUTHREALM, 'copy', '--from', source.url, '--to', target.url];
  const { stderr, code } = await runCommand(command);
  expect([code, stderr.startsWith('authrealm: the target ')]).toEqual([1, true]);
  expect(await isEmptyTarget(target)).toBe(true);
  expect((await runCopy(source, target)).code).toBe(0);
  expect(await allRows(target)).toEqual(await allRows(source));
});
