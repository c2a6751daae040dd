import type { Database } from 'bun:sqlite';
import { connectSqlite } from '../src/store/sqlite/connection.ts';
import { sqliteMigrations } from '../src/store/sqlite/open.ts';
import { populationLines, type UserOf } from '../test/support/population.ts';
import { type BareInsert, prepareBare } from './bare.ts';
import { memoryOf } from './server.ts';

const COMMIT_LINES = 10_000;
const WRITE_CHARACTERS = 1 << 20;

/** What an import came to. */
export interface Filling {
  /** The start of the process included. */
  readonly recordsPerSecond: number;
  /** The most that was seen of either. */
  readonly anonymousMb: number;
  readonly fileMb: number;
}

/** Fills a database through `import`. `flags` say which. */
export async function fillByImport(
  authrealm: string,
  flags: readonly string[],
  users: number,
  userOf?: UserOf,
): Promise<Filling> {
  const start = performance.now();
  const child = Bun.spawn([authrealm, 'import', '-', ...flags], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const peak = { anonymousMb: 0, fileMb: 0 };
  let pending = '';
  for (const line of populationLines(users, userOf)) {
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
  return { recordsPerSecond: (users * 3) / ((performance.now() - start) / 1000), ...peak };
}

/**
 * The same rows and their change records by a bare loop of prepared inserts, in commits of the same size and as
 * durable; records per second. Only the engine is timed: the rows are made ready before.
 */
export function fillBare(path: string, users: number): number {
  const db = connectSqlite(path);
  db.run('pragma journal_mode = wal');
  for (const { sql } of sqliteMigrations()) db.run(sql);
  const prepare = prepareBare(db);
  let ready: BareInsert[] = [];
  let milliseconds = 0;
  for (const group of populationLines(users)) {
    for (const line of group.split('\n')) ready.push(...prepare(line));
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
