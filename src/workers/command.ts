import { IS_SINGLE_FILE, programFile } from '../platform/program_files.ts';

/** The kinds of worker processes. */
export type WorkerKind = 'hasher' | 'checker' | 'reader';

/** As bin/authrealm has it: no file of the working folder decides what the runtime does. */
const RUNTIME_OPTIONS = ['--no-env-file', '--config=/dev/null', '--tsconfig-override=/dev/null'];

/** The command line of a worker. `worker` is a serving process, whose words are flags. */
export function workerCommand(kind: WorkerKind | 'worker', ...words: readonly string[]): readonly string[] {
  const program = IS_SINGLE_FILE ? [] : [...RUNTIME_OPTIONS, programFile('src/main.ts')];
  return [process.execPath, ...program, kind, ...words];
}
