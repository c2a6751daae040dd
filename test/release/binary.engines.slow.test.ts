import { describe, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { buildBinary } from '../../scripts/release/binary.ts';
import { ROOT } from '../../scripts/release/build.ts';
import { VERSION } from '../../src/model/version.ts';
import { type CheckReport, isHealthy } from '../../src/ops/doctor/inspection.ts';
import { runFirstMinutes } from '../support/first_minutes.ts';
import { freshFolder } from '../support/folder.ts';
import { createHostileFolder } from '../support/hostile_folder.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { type Environment, runCommand } from '../support/processes.ts';
import { walkProgram } from '../support/program_walk.ts';
import { sharedBinary } from '../support/shared_artefacts.ts';

/** The compiled single file for this platform: it needs nothing but itself. */

const TARGET = 'linux-x64-glibc';
const DATABASE = ['--database', 'sqlite:none.db'];
const OTHER_USER = 65_534;

const binary = await sharedBinary(TARGET);

/** A copy of the binary at this path of a folder. */
function copyTo(folder: string, name: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(binary, path);
  return path;
}

test('the binary contains no path of the machine that built it', () => {
  expect(readFileSync(binary).includes(ROOT)).toBe(false);
});

describe('the binary does everything, from init to backup,', () => {
  test('in an empty environment', async () => {
    await walkProgram({ command: ['env', '-i', binary], folder: freshFolder() });
  });

  test('under another name', async () => {
    await walkProgram({ command: [copyTo(freshFolder(), 'bun')], folder: freshFolder() });
  });

  test('from a path with spaces', async () => {
    const folder = join(freshFolder(), 'my files');
    mkdirSync(folder);
    await walkProgram({ command: [copyTo(folder, 'in here/auth realm')], folder });
  });

  test('through a symbolic link', async () => {
    const link = join(freshFolder(), 'authrealm');
    symlinkSync(binary, link);
    await walkProgram({ command: [link], folder: freshFolder() });
  });

  test('found by the PATH', async () => {
    const folder = dirname(copyTo(freshFolder(), 'authrealm'));
    const environment = { PATH: `${folder}:${process.env.PATH}` };
    await walkProgram({ command: ['authrealm'], folder: freshFolder(), environment });
  });

  test.if(process.getuid?.() === 0)('as a user without a home, who cannot write the binary', async () => {
    const [bin, folder] = [freshFolder(), freshFolder()];
    chmodSync(bin, 0o755);
    chownSync(folder, OTHER_USER, OTHER_USER);
    const drop = ['setpriv', `--reuid=${OTHER_USER}`, `--regid=${OTHER_USER}`, '--clear-groups'];
    await walkProgram({
      command: [...drop, copyTo(bin, 'authrealm')],
      folder,
      environment: { HOME: '/nonexistent' },
    });
  });
});

test('the binary creates the schema of PostgreSQL and compares it with the one that it knows', async () => {
  const database = ['--database', await (await sharedServer()).freshDatabase()];
  expect(await runCommand([binary, 'migrate', ...database])).toMatchObject({ stderr: '', code: 0 });
  const key = join(freshFolder(), 'master.key');
  expect(await runCommand([binary, 'keys', 'make', key])).toMatchObject({ code: 0 });
  const { stdout } = await runCommand([binary, 'doctor', ...database, '--master-key-file', key, '--json']);
  const { checks } = JSON.parse(stdout) as { checks: readonly CheckReport[] };
  const about = checks.filter(({ check }) => check === 'schema' || check === 'migrations');
  expect(about.map((report) => [report.check, isHealthy(report)])).toEqual([
    ['migrations', true],
    ['schema', true],
  ]);
});

test('the commands that init of the binary prints run that file from any folder', async () => {
  const program = copyTo(freshFolder(), 'in here/auth realm');
  const { serve, record } = await runFirstMinutes([program, 'init']);
  expect(serve).toStartWith(`'${program}' serve `);
  expect(record.username).toBe('jane@example.com');
});

describe('init of the binary prints commands with the path of its file', () => {
  const commandsOf = async (command: string, environment: Environment = {}) => {
    const { stdout } = await runCommand([command, 'init', '--database', newDatabase()], environment);
    return stdout.match(/^.*(?= serve --database)/m)?.[0];
  };
  const newDatabase = () => `sqlite:${join(freshFolder(), 'new.db')}`;

  test('started through a symbolic link, relative to the working folder', async () => {
    const link = join(freshFolder(), 'identity');
    symlinkSync(binary, link);
    expect(await commandsOf(relative(process.cwd(), link))).toBe(binary);
  });

  test('found by the PATH', async () => {
    const folder = freshFolder();
    symlinkSync(binary, join(folder, 'links'));
    expect(await commandsOf('links', { PATH: `${folder}:${process.env.PATH}` })).toBe(binary);
  });

  test('next to another authrealm in the PATH', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'authrealm'), '#!/bin/sh\n', { mode: 0o755 });
    expect(await commandsOf(binary, { PATH: `${folder}:${process.env.PATH}` })).toBe(binary);
  });
});

describe('the working folder of the binary', () => {
  test('a binary without the guards reads the configuration of its working folder', async () => {
    const unguarded = await buildBinary(TARGET, freshFolder(), []);
    const { executed, inFolder } = createHostileFolder();
    const { stderr } = await runCommand(inFolder(unguarded, 'client', 'list', ...DATABASE));
    expect([stderr, existsSync(executed)]).toEqual([expect.stringContaining('AUTHREALM_PORTS'), true]);
  });

  test('the binary and its processes ignore the configuration of their working folder', async () => {
    const { executed, inFolder } = createHostileFolder();
    await walkProgram({ command: inFolder(binary), folder: freshFolder() });
    expect(existsSync(executed)).toBe(false);
  });
});

describe('variables of the runtime in the environment of the binary', () => {
  test('variables that name code or configuration of Bun and Node are ignored', async () => {
    const { folder, executed } = createHostileFolder();
    const code = join(folder, 'foreign.js');
    const environment = {
      ...{ NODE_OPTIONS: `--require ${code}`, NODE_PATH: join(folder, 'node_modules') },
      ...{
        BUN_INSPECT_PRELOAD: code,
        BUN_CONFIG_PRELOAD: code,
        BUN_CONFIG_FILE: join(folder, 'bunfig.toml'),
      },
      ...{ BUN_INSTALL: folder, BUN_TMPDIR: folder, BUN_RUNTIME_TRANSPILER_CACHE_PATH: folder },
    };
    await walkProgram({ command: [binary], folder: freshFolder(), environment });
    expect(existsSync(executed)).toBe(false);
  });

  // SECURITY.md, "What it does not defend against".
  test('BUN_OPTIONS and BUN_BE_BUN take effect', async () => {
    const { folder, executed } = createHostileFolder();
    const preload = { BUN_OPTIONS: `--preload ${join(folder, 'foreign.js')}` };
    expect(await runCommand([binary, '--version'], preload)).toMatchObject({ stdout: `${VERSION}\n` });
    expect(existsSync(executed)).toBe(true);
    const { stdout } = await runCommand([binary, '-p', '6 * 7'], { BUN_BE_BUN: '1' });
    expect(stdout).toBe('42\n');
  });
});

test('a binary without its last megabyte does not start, not even as Bun', async () => {
  const path = copyTo(freshFolder(), 'authrealm');
  truncateSync(path, statSync(path).size - 1_000_000);
  expect(await runCommand([path, '--version'])).toMatchObject({
    stdout: '',
    stderr: expect.stringContaining('is truncated'),
    code: 1,
  });
});
