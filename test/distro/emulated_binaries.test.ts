import { expect, test } from 'bun:test';
import { copyFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/folder.ts';
import { runCommand } from '../support/processes.ts';
import { walkWithoutWorkers } from '../support/program_walk.ts';
import { sharedBinary } from '../support/shared_artefacts.ts';

/**
 * Binaries for other processors and C libraries, with the packages qemu-user-static, libc6-arm64-cross and musl. Neither can start
 * worker processes here: the emulator is not registered with the kernel, and a worker does not get LD_LIBRARY_PATH. Nothing here
 * needs one.
 */

const LIBRARIES = '/usr/lib/x86_64-linux-gnu';

/**
 * The folder of the C++ library that Alpine Linux has and Debian lacks for musl: that of Debian for its own C library, and the
 * functions of the latter that musl has not.
 */
async function makeMuslLibraries(): Promise<string> {
  const folder = freshFolder();
  for (const name of ['libstdc++.so.6', 'libgcc_s.so.1'])
    copyFileSync(realpathSync(join(LIBRARIES, name)), join(folder, name));
  const options = ['-shared', '-fPIC', '-nostdlib', '-o', join(folder, 'ld-linux-x86-64.so.2')];
  const { stderr, code } = await runCommand(['cc', ...options, join(import.meta.dir, 'musl_glibc.c')]);
  expect([stderr, code]).toEqual(['', 0]);
  return folder;
}

const walk = (command: readonly string[]) => walkWithoutWorkers({ command, folder: freshFolder() });

test('the binary for arm64 answers lookups under an emulator', async () => {
  const emulator = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'];
  await walk([...emulator, await sharedBinary('linux-arm64-glibc')]);
});

test('the binary for x64 answers lookups on the processors of 2008', async () => {
  await walk(['qemu-x86_64-static', '-cpu', 'Nehalem', await sharedBinary('linux-x64-glibc')]);
});

test('the binary for musl answers lookups with the musl of Debian', async () => {
  const libraries = `LD_LIBRARY_PATH=${await makeMuslLibraries()}`;
  await walk(['env', libraries, await sharedBinary('linux-x64-musl')]);
});
