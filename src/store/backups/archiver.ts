import { Database } from 'bun:sqlite';
import { Refusal } from '../../domain/fault.ts';
import { toRefusal } from '../refusals.ts';
import { writeCopy } from '../sqlite/file_copy.ts';
import { type DatabaseSummary, examineDatabase } from './verification.ts';

/** What takes long, and is asked of a process of its own: it can be ended then, and somebody sees how far it is. */
export type ArchiverTask =
  | { readonly does: 'copy'; readonly from: string; readonly to: string }
  | {
      readonly does: 'examine';
      readonly path: string;
      readonly called: string;
      readonly programVersion: string;
    };

/** Has an errand done elsewhere. Rejects with the Refusal that it ended with. */
export interface Archiver {
  copy(from: string, to: string): Promise<void>;
  /** `called` is what a refusal begins with: the path may be that of a draft. */
  examine(path: string, called: string, programVersion: string): Promise<DatabaseSummary>;
}

/** How long a copy waits for a log that is being recovered. */
const WAIT_MS = 5_000;

/** Does an errand. Throws Refusal. */
export function runArchiverTask(errand: ArchiverTask): DatabaseSummary | undefined {
  if (errand.does === 'examine') return examineNamed(errand);
  try {
    copyLive(errand.from, errand.to);
  } catch (error) {
    throw toRefusal(error, errand.from);
  }
  return undefined;
}

function examineNamed({
  path,
  called,
  programVersion,
}: Extract<ArchiverTask, { does: 'examine' }>): DatabaseSummary {
  try {
    return examineDatabase(path, programVersion);
  } catch (error) {
    const refusal = toRefusal(error, path);
    if (!(refusal instanceof Refusal)) throw error;
    throw new Refusal(`${called}: ${refusal.message}`, { cause: error });
  }
}

/** One read transaction: writers go on beside it, and nothing of theirs that comes later is seen. */
function copyLive(from: string, to: string): void {
  // One that may only read would leave a log and its index behind where nobody else has the database open.
  const db = new Database(from, { readwrite: true });
  try {
    db.run(`pragma busy_timeout = ${WAIT_MS}`);
    writeCopy(db, to);
  } finally {
    db.close(false);
  }
}
