import { rmSync } from 'node:fs';
import { computeMatrix, RIGHTS, TOKENS } from '../test/http/matrix/matrix.ts';
import { writeTable } from '../test/http/matrix/table.ts';
import { RUN_FOLDER } from '../test/support/folder.ts';

/**
 * Writes the tables of who may do what as the program answers now: `bun scripts/write_matrix.ts`, run where an operation
 * or a scope was added. What it changed is to be read: the test that compares with the tables never writes them.
 */

const { rights, tokens } = await computeMatrix();
writeTable(RIGHTS.path, RIGHTS.names, rights);
writeTable(TOKENS.path, TOKENS.names, tokens);
rmSync(RUN_FOLDER, { recursive: true, force: true });
console.log(`${rights.size} rows of rights, ${tokens.size} of tokens`);
