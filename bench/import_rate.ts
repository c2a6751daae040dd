import type { Database } from 'bun:sqlite';
import { sqliteMigrations } from '../src/ops/store/sqlite/open.ts';
import { connectSqlite } from '../src/sql/sqlite/connection.ts';
import { populationLines, type UserOf } from '../test/support/population.ts';
import { memoryOf } from '../test/support/process_tree.ts';
import { type BareInsert, prepareBare } from './bare_inserts.ts';

const COMMIT_LINES = 10_000;
const WRITE_CHARACTERS = 1 << 20;

/** Rate and peak memory of an import. */
export interface ImportResult {
  /** Includes the start of the process. */
  readonly recordsPerSecond: number;
  /** Peak values. */
  readonly anonymousMb: number;
  readonly fileMb: number;
}

/** Fills a database through `import`. `flags` name the database. */
export async function fillByImport(
  authrealm: string,
  flags: readonly string[],
  users: number,
  userOf?: UserOf,
): Promise<ImportResult> {
  return importLines(authrealm, flags, populationLines(users, userOf), users * 3);
}

/** Imports lines that hold this number of records. */
export async function importLines(
  authrealm: string,
  flags: readonly string[],
  lines: Iterable<string>,
  records: number,
): Promise<ImportResult> {
  // Creates the database, and fails where it has clients already.
  await Bun.spawn([authrealm, 'init', ...flags], { stdio: ['ignore', 'ignore', 'ignore'], env: process.env })
    .exited;
  const start = performance.now();
  const child = Bun.spawn([authrealm, 'import', '-', ...flags], {
    stdio: ['pipe', 'ignore', 'inherit'],
    env: process.env,
  });
  const peak = { anonymousMb: 0, fileMb: 0 };
  let pending = '';
  for (const line of lines) {
    pending += `${line}\n`;
    if (pending.length < WRITE_CHARACTERS) continue;
    child.stdin.write(pending);
    await child.stdin.flush();
    pending = '';
    const { anonymousMb, fileMb } = memoryOf(child.pid);
    peak.anonymousMb = Math.max(peak.anonymousMb, anonymousMb);
    peak.fileMb = Math.max(peak.fileMb, fileMb);
  }
  child.stdin.write(pending);
  await child.stdin.end();
  if ((await child.exited) !== 0) throw new Error('the import failed');
  return { recordsPerSecond: records / ((performance.now() - start) / 1000), ...peak };
}

/**
 * Inserts the same rows and change records in a bare loop of prepared inserts, with the same commit size and durability.
 * Returns records per second of the engine alone: the rows are prepared before the clock starts.
 */
export function fillBare(path: string, users: number): number {
  const db = connectSqlite(path);
  db.run('pragma journal_mode = wal');
  for (const { sql } of sqliteMigrations()) db.run(sql);
  const prepare = prepareBare(db);
  let ready: BareInsert[] = [];
  let milliseconds = 0;
  for (const lines of populationLines(users)) {
    for (const line of lines.split('\n')) ready.push(...prepare(line));
    if (ready.length < COMMIT_LINES * 2) continue;
    milliseconds += insertAll(db, ready);
    ready = [];
  }
  milliseconds += insertAll(db, ready);
  db.close();
  return (users * 3) / (milliseconds / 1000);
}

function insertAll(db: Database, inserts: readonly BareInsert[]): number {
  const start = performance.now();
  db.run('begin immediate');
  for (const { statement, values } of inserts) statement.run(...values);
  db.run('commit');
  return performance.now() - start;
}
