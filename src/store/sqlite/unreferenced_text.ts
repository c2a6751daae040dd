import type { Database } from 'bun:sqlite';
import { closeSync, openSync, readSync } from 'node:fs';
import { LIMITS } from '../../domain/limits.ts';
import { isVisible, membersOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { retryWhileBusy } from './connection.ts';
import { sqliteStatements } from './dialect.ts';
import { connectToRead } from './reader.ts';

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

const CHUNK_BYTES = 8_388_608;

/** The texts that stand in a file, in UTF-8. Not for a process that has the file open as a database. */
function searchFile(path: string, texts: readonly string[]): readonly string[] {
  const left = new Map(texts.map((text) => [text, Buffer.from(text)]));
  const overlap = Math.max(0, ...[...left.values()].map(({ length }) => length - 1));
  const buffer = Buffer.alloc(CHUNK_BYTES + overlap);
  const file = openSync(path, 'r');
  const found: string[] = [];
  try {
    for (let start = 0; left.size > 0; start += CHUNK_BYTES) {
      const count = readSync(file, buffer, 0, buffer.length, start);
      const part = buffer.subarray(0, count);
      for (const [text, bytes] of left) {
        if (!part.includes(bytes)) continue;
        found.push(text);
        left.delete(text);
      }
      if (count < buffer.length) break;
    }
  } finally {
    closeSync(file);
  }
  return found;
}
