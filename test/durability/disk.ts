import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Subprocess } from 'bun';
import { freshFolder, RUN_FOLDER } from '../support/service.ts';

/** A disk between programs and the real one: it writes down what happens, and fails when told. */
export interface Disk {
  /** Starts a program on it, its output among the notes of the disk: the order of lines is the order of events. */
  start(command: readonly string[], environment?: Readonly<Record<string, string>>): Subprocess;
  /** From now on syncs fail; of a process that starts later, all but the first `spared`. */
  fail(spared?: number): void;
  /** From now on the database and its log cannot be written, until it is healed. */
  makeReadOnly(): void;
  heal(): void;
  journal(): string;
  /** Resolves once this many lines match. */
  has(pattern: RegExp, times: number): Promise<void>;
}

const PATIENCE_MS = 60_000;

/** Builds the library that stands between a program and the disk. */
export function buildShim(): string {
  return buildLibrary('sync');
}

/** Builds a library of this folder. Throws where no compiler is there: a proof that did not run is none. */
export function buildLibrary(name: 'sync' | 'clock'): string {
  freshFolder();
  const library = join(RUN_FOLDER, `${name}.so`);
  const source = join(import.meta.dir, `${name}.c`);
  if (!Bun.which('cc')) throw new Error('there is no C compiler: apt-get install -y gcc libc6-dev');
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
        if (performance.now() - start > PATIENCE_MS) throw new Error(`no ${pattern} in ${journal()}`);
        await Bun.sleep(5);
      }
    },
  };
}
