import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Subprocess } from 'bun';
import { freshFolder, RUN_FOLDER } from '../support/service.ts';

/** A layer between programs and the disk that records writes and syncs, and injects failures. */
export interface Disk {
  /** Starts a program on this disk. Its output goes to the journal too, so the order of lines is the order of events. */
  start(command: readonly string[], environment?: Readonly<Record<string, string>>): Subprocess;
  /** Makes syncs fail; in a process that starts later, all but the first `spared`. */
  fail(spared?: number): void;
  /** Makes the database and its write-ahead log read-only until `heal`. */
  makeReadOnly(): void;
  heal(): void;
  journal(): string;
  /** Resolves once this many lines match. */
  has(pattern: RegExp, times: number): Promise<void>;
}

const WAIT_MS_MAX = 60_000;

/** Builds the library that records and fails syncs. */
export function buildShim(): string {
  return buildLibrary('sync');
}

/** Builds a library of this folder. Throws without a compiler, so that the tests are not skipped. */
export function buildLibrary(name: 'sync' | 'clock'): string {
  freshFolder();
  const library = join(RUN_FOLDER, `${name}.so`);
  const source = join(import.meta.dir, `${name}.c`);
  if (!Bun.which('cc')) throw new Error('no C compiler: apt-get install -y gcc libc6-dev');
  const words = ['-O1', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', library, source];
  const built = Bun.spawnSync(['cc', ...words]);
  if (!built.success) throw new Error(built.stderr.toString());
  return library;
}

export function openDisk(library: string): Disk {
  const folder = freshFolder();
  const log = join(folder, 'journal');
  const control = join(folder, 'fail');
  const readOnly = join(folder, 'read-only');
  const journal = () => readFileSync(log, 'utf8');
  return {
    start(command, environment = {}) {
      const output = openSync(log, 'a');
      const env = {
        PATH: process.env.PATH ?? '',
        LD_PRELOAD: library,
        FORCE_LOG: log,
        FORCE_FAIL: control,
        FORCE_READ_ONLY: readOnly,
      };
      const child = Bun.spawn([...command], {
        stdio: ['ignore', output, output],
        env: { ...env, ...environment },
      });
      closeSync(output);
      return child;
    },
    fail: (spared = 0) => writeFileSync(control, String(spared)),
    makeReadOnly: () => writeFileSync(readOnly, ''),
    heal() {
      for (const path of [control, readOnly]) rmSync(path, { force: true });
    },
    journal,
    async has(pattern, times) {
      const all = new RegExp(pattern.source, 'gm');
      const start = performance.now();
      while ((journal().match(all) ?? []).length < times) {
        if (performance.now() - start > WAIT_MS_MAX) throw new Error(`no ${pattern} in ${journal()}`);
        await Bun.sleep(5);
      }
    },
  };
}
