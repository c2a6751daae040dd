import { fileURLToPath } from 'node:url';

/** The kinds of worker processes. */
export type WorkerKind = 'hasher' | 'checker' | 'reader' | 'searcher' | 'archiver';

/** As bin/authrealm has it: no file of the working folder decides what the runtime does. */
const RUNTIME_OPTIONS = ['--no-env-file', '--config=/dev/null', '--tsconfig-override=/dev/null'];

/** The command line of a worker. `worker` is a serving process, whose words are flags. */
export function workerCommand(kind: WorkerKind | 'worker', ...words: readonly string[]): readonly string[] {
  const main = fileURLToPath(new URL('../main.ts', import.meta.url));
  return [process.execPath, ...RUNTIME_OPTIONS, main, kind, ...words];
}
