import { IS_SINGLE_FILE, programFile } from '../../model/program_files.ts';

export type TaskName = 'hasher' | 'checker' | 'reader';

/** As bin/authrealm has it: no file of the working folder decides what the runtime does. */
const RUNTIME_OPTIONS = ['--no-env-file', '--config=/dev/null', '--tsconfig-override=/dev/null'];

/** The command line of a process. `worker` is a serving process, whose words are flags. */
export function workerCommand(task: TaskName | 'worker', ...words: readonly string[]): readonly string[] {
  const program = IS_SINGLE_FILE ? [] : [...RUNTIME_OPTIONS, programFile('src/main.ts')];
  return [process.execPath, ...program, task, ...words];
}
