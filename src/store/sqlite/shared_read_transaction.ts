import { type Pointer, toArrayBuffer } from 'bun:ffi';
import type { Database } from 'bun:sqlite';
import { readFileSync, realpathSync } from 'node:fs';
import { Fault } from '../../domain/fault.ts';
import { rollbackQuietly } from './connection.ts';

/**
 * Lets the reads of one turn of the event loop share a read transaction, which costs more than the lookup in it: four
 * system calls for its locks. Nothing is answered from it that a commit of any process, seen by anybody, has
 * overtaken.
 */
export interface SharedReadTransaction {
  /** Runs a read on the newest commit there is. */
  read<T>(work: () => T): T;
  /** How many reads there were; 0 for ever where nothing is shared. */
  reads(): number;
  /** Must be called before the connection begins a transaction of its own. */
  end(): void;
  /** Must be called before the connection is closed; whoever reads later is told that the database is gone. */
  close(): void;
}

/** Opens the snapshot of a connection; where it cannot tell that something was committed, it shares nothing. */
export function openSharedReadTransaction(db: Database): SharedReadTransaction {
  const header = logHeader(db);
  return header ? sharing(db, header) : UNSHARED;
}

/** Each read is a transaction of its own. */
export const UNSHARED: SharedReadTransaction = Object.freeze({
  read: <T>(work: () => T): T => work(),
  reads: () => 0,
  end: () => undefined,
  close: () => undefined,
});

function sharing(db: Database, header: Uint32Array): SharedReadTransaction {
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
      // A read that met a damaged page fails the commit as well. It told so itself, and nothing was written.
      rollbackQuietly(db);
    }
  }

  return {
    read(work) {
      if (isClosed) throw new Fault('unavailable');
      reads += 1;
      if (isOpen && !isCurrent()) end();
      if (!isOpen) {
        // Noted before the transaction begins: a commit in between makes the note old, never the snapshot.
        seen.set(header);
        begin.run();
        isOpen = true;
        setImmediate(end);
      }
      return work();
    },
    reads: () => reads,
    end,
    close() {
      end();
      isClosed = true;
    },
  };
}

/**
 * The words of the log's header that move with every commit: the change counter, the last frame, the two halves of the
 * checksum (sqlite.org/walformat.html, 2.1). SQLite itself compares the header to learn whether a snapshot is old.
 */
const CHANGES = 2;
const LAST_FRAME = 4;
const CHECKSUM = 10;
const HEADER_BYTES = 48;

/**
 * The header of the write-ahead log's index where SQLite has it mapped: the file must not be opened again, because
 * closing a second descriptor would drop the locks of this process. Undefined where the system does not tell the
 * address, or the database has no such file.
 */
function logHeader(db: Database): Uint32Array | undefined {
  // The index is mapped with the first read.
  db.query('select count(*) from sqlite_schema').get();
  try {
    const file = `${realpathSync(db.filename)}-shm`;
    const line = readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .find((each) => each.endsWith(` ${file}`) && each.includes(' 00000000 '));
    const address = line && Number.parseInt(line, 16);
    return address ? new Uint32Array(toArrayBuffer(address as Pointer, 0, HEADER_BYTES)) : undefined;
  } catch {
    return undefined;
  }
}
