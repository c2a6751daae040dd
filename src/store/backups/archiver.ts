import { Database } from 'bun:sqlite';
import { refusalOf } from '../advice.ts';
import { writeCopy } from '../sqlite/copy.ts';
import { type Examined, examine } from './examination.ts';

/** What takes long, and is asked of a process of its own: it can be ended then, and somebody sees how far it is. */
export type Errand =
  | { readonly does: 'copy'; readonly from: string; readonly to: string }
  | { readonly does: 'examine'; readonly path: string; readonly programVersion: string };

/** Has an errand done elsewhere. Rejects with the Refusal that it ended with. */
export interface Archiver {
  copy(from: string, to: string): Promise<void>;
  examine(path: string, programVersion: string): Promise<Examined>;
}

/** How long a copy waits for a log that is being recovered. */
const WAIT_MS = 5_000;

/** Does an errand. Throws Refusal. */
export function runErrand(errand: Errand): Examined | undefined {
  try {
    if (errand.does === 'examine') return examine(errand.path, errand.programVersion);
    copyLive(errand.from, errand.to);
    return undefined;
  } catch (error) {
    throw refusalOf(error, errand.does === 'copy' ? errand.from : errand.path);
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
