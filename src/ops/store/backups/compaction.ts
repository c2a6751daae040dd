import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '../../../model/fault.ts';
import type { Program } from '../../../sql/migrations.ts';
import { writeCompact } from '../../../sql/sqlite/file_copy.ts';
import { lockDatabase, replaceDatabase } from './replacement.ts';
import { withTemporaryFolder } from './temporary_folder.ts';
import { verifyDatabaseFile } from './verification.ts';

export type CompactionStep = 'verifying the database' | 'writing the new file' | 'verifying the new file';

/**
 * Rewrites a database in place, with what lookups read at its beginning and without free pages. The database is locked
 * against all other processes. The new file replaces it in one step, after both were verified and have the same number of
 * rows in each table; until then the database is not changed. `onStep` is called before each step. Throws Refusal with
 * advice.
 */
export async function compact(
  database: string,
  { version, clock }: Program,
  onStep: (step: CompactionStep) => void,
) {
  const path = realpathSync(database);
  if (!statSync(path).isFile()) throw new Refusal(`${path} is not a file: pass the path of a database file`);
  using _ = lockDatabase(path);
  return await withTemporaryFolder(path, clock, async (folder) => {
    onStep('verifying the database');
    const before = verifyDatabaseFile(path, `the database ${path}`, version);
    const compacted = join(folder, 'compact.db');
    onStep('writing the new file');
    writeCompact(path, compacted);
    onStep('verifying the new file');
    const label = `${path} was not changed, because the new file failed verification`;
    const summary = verifyDatabaseFile(compacted, label, version);
    if (!Bun.deepEquals(before, summary))
      throw new Refusal(`${label}: its rows differ from those of the database`);
    const sizes = { bytesBefore: statSync(path).size, bytesAfter: statSync(compacted).size };
    replaceDatabase(path, compacted);
    return { summary, ...sizes };
  });
}
