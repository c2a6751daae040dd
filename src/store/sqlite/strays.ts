import type { Database } from 'bun:sqlite';
import { LIMITS } from '../../domain/limits.ts';
import { isVisible, membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { retryWhileBusy } from './connection.ts';
import { sqliteStatements } from './dialect.ts';
import { connectToRead } from './reader.ts';
import { searchFile } from './search_file.ts';

/**
 * Whether any of the texts stands in a byte of the file and in no record. Not for a process that has the file open as a
 * database: closing a second descriptor of it would drop the locks of that one.
 */
export async function hasUnreferencedText(path: string, texts: readonly string[]): Promise<boolean> {
  const found = searchFile(path, texts);
  if (found.length === 0) return false;
  const db = await retryWhileBusy(() => connectToRead(path), LIMITS.migrationWaitMsMax);
  try {
    for (const text of found) if (!(await isHeld(db, text))) return true;
    return false;
  } finally {
    db.close(false);
  }
}

/** Whether a record holds the text, in a member or in what it is compared by. */
async function isHeld(db: Database, text: string): Promise<boolean> {
  for (const resource of RESOURCES) if (await isHeldBy(db, resource, text)) return true;
  return false;
}

interface Looked {
  /** Where the last row lies that was looked at; null behind the last one of all. */
  readonly slot: number | null;
  readonly holds: number | null;
}

/** No read transaction is longer than so many rows, so that nobody who empties the write-ahead log waits for the whole. */
async function isHeldBy(db: Database, resource: Resource, text: string): Promise<boolean> {
  const columns = sqliteStatements(resource).columns.filter((column) => isTextual(resource, column));
  const holds = columns.map((column) => `ifnull(instr(${column}, ?2), 0) > 0`).join(' or ');
  const look = db.prepare<Looked, [number, string, number]>(
    `select max(slot) as slot, max(holds) as holds from (
       select slot, ${holds} as holds from ${resource.table} where slot > ?1 order by slot limit ?3)`,
  );
  try {
    for (let slot = -1; ; ) {
      const looked = await retryWhileBusy(() => look.get(slot, text, ROWS), LIMITS.migrationWaitMsMax);
      if (looked?.holds === 1) return true;
      if (!looked || looked.slot === null) return false;
      slot = looked.slot;
    }
  } finally {
    look.finalize();
  }
}

const ROWS = 20_000;

/** A column of a member that callers see, or of what such a member is compared by. */
function isTextual(resource: Resource, column: string): boolean {
  return membersOf(resource).some(
    (member) => isVisible(member) && (column === member.name || column === `${member.name}_key`),
  );
}
