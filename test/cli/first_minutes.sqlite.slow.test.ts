import { describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { findPort } from '../support/daemons.ts';
import { inFolder, runFirstMinutes } from '../support/first_minutes.ts';
import { AUTHREALM, AUTHREALM_UNPRIVILEGED, runCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';
import { smallFolder } from '../support/small_disk.ts';

/** A new user's first commands, from folders and in environments that they may have. */

const USER = process.getuid?.();

function folderNamed(name: string): string {
  const folder = join(freshFolder(), name);
  mkdirSync(folder);
  return folder;
}

describe('the commands that init prints', () => {
  test('the commands that init prints without a database name the default one by its path', async () => {
    const folder = folderNamed("Jane's first folder");
    const { serve, record } = await runFirstMinutes([AUTHREALM, 'init'], folder);
    const quoted = folder.replace("'", "'\\''");
    expect(serve).toStartWith(`${realpathSync(AUTHREALM)} serve --database '${quoted}/authrealm.db' --port `);
    expect(record.username).toBe('jane@example.com');
  }, 300_000);

  test('the commands that init prints name files of flags and variables by their paths', async () => {
    const folder = folderNamed('folder');
    mkdirSync(join(folder, 'data'));
    const made = await runCommand(inFolder(folder, AUTHREALM, 'keys', 'make', 'my key'));
    expect([made.code, made.stderr]).toEqual([0, '']);
    // init reads the variable in its folder; the printed commands run in another one.
    const environment = {
      AUTHREALM_MASTER_KEY_FILE: 'my key',
      AUTHREALM_CHECKPOINT_FILE: 'data/checkpoints',
    };
    const { serve, add } = await runFirstMinutes(
      [AUTHREALM, 'init', '--database', 'data/my.db'],
      folder,
      environment,
    );
    const database = `--database ${folder}/data/my.db --master-key-file '${folder}/my key'`;
    expect(serve).toMatch(
      new RegExp(
        `^${realpathSync(AUTHREALM)} serve ${database} --port \\d+ --checkpoint-file ${folder}/data/checkpoints$`,
      ),
    );
    expect(add).toStartWith(`${realpathSync(AUTHREALM)} import - ${database} <<'END'\n`);
  }, 300_000);

  test('the commands that init prints do not call another program of that name', async () => {
    const bin = folderNamed('bin');
    symlinkSync('/bin/true', join(bin, 'authrealm'));
    const { serve } = await runFirstMinutes([AUTHREALM, 'init'], freshFolder(), {
      PATH: `${bin}:${process.env.PATH}`,
    });
    expect(serve).toStartWith(`${realpathSync(AUTHREALM)} serve `);
  }, 300_000);
});

describe('an unusual environment', () => {
  const missing = () => join(freshFolder(), 'missing');
  const closed = folderNamed('closed');
  chmodSync(closed, 0o555);
  const environments: readonly (readonly [string, Record<string, string>])[] = [
    ['with a missing HOME and TMPDIR', { HOME: missing(), TMPDIR: missing() }],
    ['with a HOME and TMPDIR without rights', { HOME: closed, TMPDIR: closed }],
  ];

  test.each(environments)(
    'init, serve and its commands work %s',
    async (_, environment) => {
      const { record } = await runFirstMinutes(
        [...AUTHREALM_UNPRIVILEGED, 'init'],
        freshFolder(),
        environment,
      );
      expect(record.username).toBe('jane@example.com');
    },
    300_000,
  );

  const runDemo = (TMPDIR: string) => runCommand([...AUTHREALM_UNPRIVILEGED, 'demo', '--once'], { TMPDIR });
  const refusal = (why: string) => `authrealm: the demo needs a temporary folder: ${why} with TMPDIR\n`;

  test('demo with a missing TMPDIR refuses and names it', async () => {
    const folder = missing();
    const { code, stderr } = await runDemo(folder);
    const why = `folder ${folder} does not exist: create it, or choose another one`;
    expect([code, stderr]).toEqual([1, refusal(why)]);
  });

  test('demo with a TMPDIR without rights refuses and names it', async () => {
    const { code, stderr } = await runDemo(closed);
    const why = `user ${USER} may not create files in ${closed}: change its owner or its mode, or choose another folder`;
    expect([code, stderr]).toEqual([1, refusal(why)]);
  });
});

describe('serve in a folder', () => {
  const serve = async (folder: string) => {
    const command = inFolder(folder, ...AUTHREALM_UNPRIVILEGED, 'serve', '--port', String(findPort()));
    const { code, stderr } = await runCommand(command);
    return [code, stderr];
  };
  const refusal = (error: string, advice: string) =>
    `authrealm: the database ./authrealm.db cannot be opened: ${error}; ${advice}\n`;

  test('serve in a folder without rights names the user and the option', async () => {
    const folder = folderNamed('closed');
    chmodSync(folder, 0o555);
    const advice = `user ${USER} may not create files in ${folder}: change its owner or its mode, or pass another path with --database`;
    expect(await serve(folder)).toEqual([
      1,
      refusal("EACCES: permission denied, open './authrealm.db'", advice),
    ]);
  });

  test('serve on a disk that is mounted read-only names the option, with a database and without', async () => {
    const folder = await smallFolder(16);
    if (folder === undefined) return;
    const remount = (mode: string) => runCommand(['mount', '-o', `remount,${mode}`, folder]);
    const advice =
      'its file system is mounted read-only: remount it for writing, or pass a path on another one with --database';
    await remount('ro');
    expect(await serve(folder)).toEqual([
      1,
      refusal("EROFS: read-only file system, open './authrealm.db'", advice),
    ]);
    await remount('rw');
    const created = await runCommand(inFolder(folder, AUTHREALM, 'init'));
    expect([created.code, created.stderr]).toEqual([0, '']);
    await remount('ro');
    expect(await serve(folder)).toEqual([
      1,
      refusal("EROFS: read-only file system, access './authrealm.db'", advice),
    ]);
  });
});
