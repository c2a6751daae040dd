import { beforeAll, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { binaryName, buildBinary } from '../../scripts/release/binary.ts';
import { runFirstMinutes } from '../support/first_minutes.ts';
import { freshFolder } from '../support/folder.ts';
import { createHostileFolder } from '../support/hostile_folder.ts';
import { runCommand } from '../support/processes.ts';
import { walkProgram } from '../support/program_walk.ts';

/** The compiled single file for this platform: it needs nothing but itself. */

const TARGET = 'linux-x64-glibc';
const DATABASE = ['--database', 'sqlite:none.db', '--migrate', 'off'];
const OTHER_USER = 65_534;

let binary: string;

beforeAll(async () => {
  binary = await buildBinary(TARGET, freshFolder());
}, 300_000);

/** A copy of the binary at this path of a folder. */
function copyTo(folder: string, name: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(binary, path);
  return path;
}

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

test('the commands that init of the binary prints run that file from any folder', async () => {
  const program = copyTo(freshFolder(), 'in here/auth realm');
  const { serve, record } = await runFirstMinutes([program, 'init']);
  expect(serve).toStartWith(`'${program}' serve `);
  expect(record.username).toBe('jane@example.com');
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

test('a binary that was cut short does not match its checksum', async () => {
  const folder = freshFolder();
  const path = copyTo(folder, binaryName(TARGET));
  const inFolder = (script: string) => runCommand(['/bin/sh', '-c', `cd "$0" && ${script}`, folder]);
  await inFolder('sha256sum authrealm-* > SHA256SUMS');
  expect(await inFolder('sha256sum --check SHA256SUMS')).toMatchObject({ code: 0 });
  truncateSync(path, readFileSync(path).length - 1);
  expect(await inFolder('sha256sum --check SHA256SUMS')).toMatchObject({
    stdout: `${basename(path)}: FAILED\n`,
    code: 1,
  });
});
