import { readFileSync } from 'node:fs';
import { programFile } from './program_files.ts';

/** The release of this program, from its package. */
export const VERSION: string = JSON.parse(readFileSync(programFile('package.json'), 'utf8')).version;
