import { Database } from 'bun:sqlite';
import { Refusal } from '../../domain/fault.ts';
import { toRefusal } from '../refusals.ts';
import { writeCopy } from '../sqlite/file_copy.ts';
import { writeCompact } from '../sqlite/file_layout.ts';
import { type DatabaseSummary, verifyDatabaseFile } from './verification.ts';

/** Long work that runs in a worker process, so that it can be interrupted and its progress displayed. */
export type ArchiverTask =
  | { readonly kind: 'copy' | 'compact'; readonly from: string; readonly to: string }
  | {
      readonly kind: 'verify';
      readonly path: string;
      readonly label: string;
      readonly programVersion: string;
    };

/** Runs tasks in a worker process. Rejects with the Refusal of the task. */
export interface Archiver {
  copy(from: string, to: string): Promise<void>;
  /** Copies a locked database to a new file, in the order that lookups prefer. */
  compact(from: string, to: string): Promise<void>;
  /** `label` is the prefix of refusals, because the path may be temporary. */
  verify(path: string, label: string, programVersion: string): Promise<DatabaseSummary>;
}

/** How long a copy waits for recovery of the write-ahead log. */
const RECOVERY_WAIT_MS = 5_000;

/** Runs a task in this process. Throws Refusal. */
export function runArchiverTask(task: ArchiverTask): DatabaseSummary | undefined {
  if (task.kind === 'verify') return verifyWithLabel(task);
  try {
    if (task.kind === 'copy') copyLiveDatabase(task.from, task.to);
    else writeCompact(task.from, task.to);
  } catch (error) {
    throw toRefusal(error, task.kind === 'copy' ? task.from : undefined);
  }
  return undefined;
}

function verifyWithLabel({
  path,
  label,
  programVersion,
}: Extract<ArchiverTask, { kind: 'verify' }>): DatabaseSummary {
  try {
    return verifyDatabaseFile(path, programVersion);
  } catch (error) {
    const refusal = toRefusal(error, path);
    if (!(refusal instanceof Refusal)) throw error;
    throw new Refusal(`${label}: ${refusal.message}`, { cause: error });
  }
}

/** Copies a consistent snapshot in one read transaction, which does not block writers. */
function copyLiveDatabase(from: string, to: string): void {
  // Where no other process has the database open, a read-only connection would leave -wal and -shm files behind.
  const db = new Database(from, { readwrite: true });
  try {
    db.run(`pragma busy_timeout = ${RECOVERY_WAIT_MS}`);
    writeCopy(db, to);
  } finally {
    db.close(false);
  }
}
