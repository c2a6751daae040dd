import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { closeSync, openSync, readSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { MAPPED_BYTES_MAX } from '../../src/store/sqlite/connection.ts';
import { mappingState, writeCompact } from '../../src/store/sqlite/file_layout.ts';
import { createStoredDatabase, runOnFile } from '../support/backup_fixtures.ts';
import { sqliteAt } from '../support/database.ts';
import { runDoctorOnFile } from '../support/doctor_report.ts';
import { freshFolder } from '../support/folder.ts';
import { manyUserLines } from '../support/import_fixtures.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

setDefaultTimeout(300_000);

/** The report on a file of which only this many bytes are mapped. */
function stateWith(path: string, mappedBytes: number) {
  const db = new Database(path, { readonly: true });
  db.run(`pragma mmap_size = ${mappedBytes}`);
  const state = mappingState(db);
  db.close();
  return state;
}

const PAGE_BYTES = 4_096;
const PAGES = 600_000;

/** Lets a closed database claim so many pages that new ones lie beyond the mapping. The file has holes, and stays small. */
function claimPages(path: string): void {
  const file = openSync(path, 'r+');
  const header = Buffer.alloc(100);
  readSync(file, header, 0, 100, 0);
  // The number of pages counts if it was written with the current change (sqlite.org/fileformat2.html, 1.3.7).
  header.writeUInt32BE(PAGES, 28);
  header.writeUInt32BE(header.readUInt32BE(24), 92);
  writeSync(file, header, 0, 100, 0);
  closeSync(file);
  truncateSync(path, PAGES * PAGE_BYTES);
}

describe('the mapping of a database file', () => {
  test('what lookups read is in the mapped part of a compacted file, and doctor advises to compact other files', async () => {
    const { path } = await createStoredDatabase(300);
    const compacted = join(freshFolder(), 'compacted.db');
    writeCompact(path, compacted);
    const mapped = Math.ceil(statSync(path).size / 3 / PAGE_BYTES) * PAGE_BYTES;
    expect(stateWith(path, 2 ** 30)).toEqual({
      facts: ['the whole file is mapped into memory'],
      findings: [],
    });
    const before = stateWith(path, mapped);
    const share = Number(/, with (\d+) % of the pages/.exec(before.facts.join())?.[1]);
    expect([share < 90, before.notes]).toEqual([
      true,
      [expect.stringMatching(/^"authrealm compact" can raise that to 100 %/)],
    ]);
    expect(stateWith(compacted, mapped)).toEqual({
      facts: [
        expect.stringMatching(/^the first \d+ of \d+ bytes are mapped into memory, with 100 % of the pages/),
      ],
      findings: [],
      notes: [],
    });
    // Less is mapped than lookups read, and a compaction cannot change that.
    const least = stateWith(compacted, 20 * PAGE_BYTES);
    expect([least.facts.join().includes('with 100 %'), least.notes]).toEqual([false, []]);
  });

  test('a large import into a file beyond the mapping, and doctor, advise to compact it', async () => {
    const path = join(freshFolder(), 'large.db');
    const database = sqliteAt(path);
    const importLines = (users: number) => {
      const lines = manyUserLines(users).map((line) => `${JSON.stringify(line)}\n`);
      return runCommand([AUTHREALM, 'import', '-', ...database.args], {}, lines.join(''));
    };
    expect((await runOnFile(path, 'init')).code).toBe(0);
    const usual = await importLines(3_400);
    expect([usual.code, usual.stdout]).toEqual([0, expect.not.stringContaining('compact')]);
    claimPages(path);
    const small = await importLines(1);
    expect([small.code, small.stdout]).toEqual([0, expect.not.stringContaining('compact')]);
    const large = await importLines(3_400);
    const fact = `the first ${MAPPED_BYTES_MAX} of ${statSync(path).size} bytes are mapped into memory, with `;
    expect([large.code, large.stdout]).toEqual([0, expect.stringContaining(`\n${fact}`)]);
    expect(large.stdout).toMatch(/\n"authrealm compact" can raise that to 100 %: .*\n$/);
    const report = (await runDoctorOnFile(path)).report('mapping');
    expect([report.facts[0]?.startsWith(fact), report.total, report.notesTotal]).toEqual([true, 0, 1]);
  });
});
