import { rmSync } from 'node:fs';
import { computeMatrix, RIGHTS, TOKENS } from '../test/http/matrix/matrix.ts';
import { writeTable } from '../test/http/matrix/table.ts';
import { RUN_FOLDER } from '../test/support/folder.ts';

/**
 * Writes the permission tables in test/http/matrix/ from the current responses of the program: run `bun scripts/write_matrix.ts`
 * after adding an operation or a scope, and review the changes. The test that compares with the tables never writes them.
 */

const { rights, tokens } = await computeMatrix();
writeTable(RIGHTS.path, RIGHTS.names, rights);
writeTable(TOKENS.path, TOKENS.names, tokens);
rmSync(RUN_FOLDER, { recursive: true, force: true });
console.log(`${rights.size} rows of rights, ${tokens.size} of tokens`);
