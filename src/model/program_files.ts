import { join } from 'node:path';

/** Whether the program is the single file that `scripts/release/binary.ts` compiles. */
export const IS_SINGLE_FILE: boolean = Bun.isStandaloneExecutable;

/** The folder of the package, or the root of the files that are embedded in the single file. */
const PROGRAM_FOLDER = IS_SINGLE_FILE ? import.meta.dir : join(import.meta.dir, '../..');

/** The absolute path of a file or folder of the program that is read while it runs. `path` begins at the folder of the package. */
export function programFile(path: string): string {
  return join(PROGRAM_FOLDER, path);
}
