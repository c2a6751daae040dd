import type { Database } from 'bun:sqlite';
import { closeSync, openSync, readSync } from 'node:fs';
import { LIMITS } from '../../domain/limits.ts';
import { isVisible, membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { WORDS } from '../records/derived_columns.ts';
import { retryWhileBusy } from './connection.ts';
import { sqliteStatements } from './dialect.ts';
import { connectToRead } from './reader.ts';

/**
 * Whether the file contains any of the texts outside of the current records. Must not run in a process that has the
 * file open as a database: closing a second descriptor would drop the locks of that process.
 */
export async function hasUnreferencedText(path: string, texts: readonly string[]): Promise<boolean> {
  const found = searchFile(path, texts);
  if (found.length === 0) return false;
  const db = await retryWhileBusy(() => connectToRead(path), LIMITS.migrationWaitMsMax);
  try {
    for (const text of found) if (!(await isReferenced(db, text))) return true;
    return false;
  } finally {
    db.close(false);
  }
}

/** Whether a record contains the text, in a member or what is derived from it. */
async function isReferenced(db: Database, text: string): Promise<boolean> {
  for (const resource of RESOURCES) if (await isReferencedBy(db, resource, text)) return true;
  return false;
}

interface SearchedBatch {
  /** The row ID of the last row of the batch; null after the last row of the table. */
  readonly slot: number | null;
  readonly matches: number | null;
}

/** Searches in batches, so that no read transaction delays a checkpoint of the write-ahead log for the whole table. */
async function isReferencedBy(db: Database, resource: Resource, text: string): Promise<boolean> {
  const columns = sqliteStatements(resource).columns.filter((column) => isTextual(resource, column));
  const matches = columns.map((column) => `ifnull(instr(${column}, ?2), 0) > 0`).join(' or ');
  const search = db.prepare<SearchedBatch, [number, string, number]>(
    `select max(slot) as slot, max(matches) as matches from (
       select slot, ${matches} as matches from ${resource.table} where slot > ?1 order by slot limit ?3)`,
  );
  try {
    for (let slot = -1; ; ) {
      const batch = await retryWhileBusy(() => search.get(slot, text, BATCH_ROWS), LIMITS.migrationWaitMsMax);
      if (batch?.matches === 1) return true;
      if (!batch || batch.slot === null) return false;
      slot = batch.slot;
    }
  } finally {
    search.finalize();
  }
}

const BATCH_ROWS = 20_000;

/** Whether a column holds a visible member, its comparison key or the words of members. */
function isTextual(resource: Resource, column: string): boolean {
  return (
    column === WORDS ||
    membersOf(resource).some(
      (member) => isVisible(member) && (column === member.name || column === `${member.name}_key`),
    )
  );
}

const CHUNK_BYTES = 8_388_608;

/** Returns those of the texts that the file contains in UTF-8. */
function searchFile(path: string, texts: readonly string[]): readonly string[] {
  const missing = new Map(texts.map((text) => [text, Buffer.from(text)]));
  const overlap = Math.max(0, ...[...missing.values()].map(({ length }) => length - 1));
  const buffer = Buffer.alloc(CHUNK_BYTES + overlap);
  const file = openSync(path, 'r');
  const found: string[] = [];
  try {
    for (let start = 0; missing.size > 0; start += CHUNK_BYTES) {
      const count = readSync(file, buffer, 0, buffer.length, start);
      const part = buffer.subarray(0, count);
      for (const [text, bytes] of missing) {
        if (!part.includes(bytes)) continue;
        found.push(text);
        missing.delete(text);
      }
      if (count < buffer.length) break;
    }
  } finally {
    closeSync(file);
  }
  return found;
}
