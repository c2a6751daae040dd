import { type Pointer, toArrayBuffer } from 'bun:ffi';
import type { Database } from 'bun:sqlite';
import { readFileSync, realpathSync } from 'node:fs';
import { Fault } from '../../model/fault.ts';
import { isBusy, retryWhileBusy, rollbackQuietly, sqliteFault, throwSqliteFault } from './connection.ts';

export type SharedReadTransaction = ReturnType<typeof shareReads>;

/**
 * Lets the reads of one turn of the event loop share a read transaction, which costs more than a lookup: four system
 * calls for its locks. Each read still sees every commit of any process that finished before it. Where commits of other
 * processes cannot be detected, it shares nothing.
 */
export function openSharedReadTransaction(db: Database): SharedReadTransaction {
  const header = logHeader(db);
  return header ? shareReads(db, header) : UNSHARED;
}

/** Each read is a transaction of its own. */
export const UNSHARED: SharedReadTransaction = Object.freeze({
  read: <T, A>(work: (argument: A) => T, argument?: A): T => work(argument as A),
  reads: () => 0,
  end: () => undefined,
  close: () => undefined,
});

function shareReads(db: Database, header: Uint32Array) {
  const begin = db.prepare('begin');
  const commit = db.prepare('commit');
  const seen = new Uint32Array(header.length);
  let isOpen = false;
  let isClosed = false;
  let reads = 0;

  function isCurrent(): boolean {
    return (
      seen[CHANGES] === header[CHANGES] &&
      seen[LAST_FRAME] === header[LAST_FRAME] &&
      seen[CHECKSUM] === header[CHECKSUM] &&
      seen[CHECKSUM + 1] === header[CHECKSUM + 1]
    );
  }

  function end(): void {
    if (!isOpen) return;
    isOpen = false;
    // Some errors end a transaction by themselves.
    if (!db.inTransaction) return;
    try {
      commit.run();
    } catch {
      // After a read of a damaged page the commit fails as well. The read has reported that, and nothing was written.
      rollbackQuietly(db);
    }
  }

  return {
    /** Runs a read on the newest commit, with an argument: a lookup then needs no closure of its own. */
    read<T, A = undefined>(work: (argument: A) => T, argument?: A): T {
      if (isClosed) throw new Fault('unavailable');
      reads += 1;
      if (isOpen && !isCurrent()) end();
      if (!isOpen) {
        // Copied before the transaction begins: a commit in between makes the copy stale, never the snapshot.
        seen.set(header);
        begin.run();
        isOpen = true;
        setImmediate(end);
      }
      return work(argument as A);
    },
    /** The number of reads so far; always 0 where nothing is shared. */
    reads: () => reads,
    /** Must be called before the connection begins a transaction of its own. */
    end,
    /** Must be called before the connection is closed. Later reads throw Fault `unavailable`. */
    close(): void {
      end();
      isClosed = true;
    },
  };
}

/**
 * The words of the WAL-index header that change with every commit: the change counter, the last frame, and the two
 * halves of the checksum (sqlite.org/walformat.html, 2.1). SQLite itself compares the header to detect a stale
 * snapshot.
 */
const CHANGES = 2;
const LAST_FRAME = 4;
const CHECKSUM = 10;
const WAL_INDEX_HEADER_BYTES = 48;

/**
 * The header of the WAL index at the address where SQLite has mapped it. The file must not be opened again, because
 * closing a second descriptor would drop the locks of this process. Undefined where the address is unknown or the
 * database has no such file.
 */
function logHeader(db: Database): Uint32Array | undefined {
  // SQLite maps the index at the first read.
  db.query('select count(*) from sqlite_schema').get();
  try {
    const file = `${realpathSync(db.filename)}-shm`;
    const line = readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .find((each) => each.endsWith(` ${file}`) && each.includes(' 00000000 '));
    const address = line && Number.parseInt(line, 16);
    return address
      ? new Uint32Array(toArrayBuffer(address as Pointer, 0, WAL_INDEX_HEADER_BYTES))
      : undefined;
  } catch {
    return undefined;
  }
}

/** Reads at once, or retries while the database is locked, as during recovery of the write-ahead log. */
export function readRetrying<T, A = undefined>(
  sharedReads: SharedReadTransaction,
  work: (argument: A) => T,
  argument?: A,
): T | Promise<T> {
  try {
    return sharedReads.read(work, argument);
  } catch (error) {
    if (!isBusy(error)) throw sqliteFault(error);
    return retryWhileBusy(() => sharedReads.read(work, argument)).catch(throwSqliteFault);
  }
}
