import { Database } from 'bun:sqlite';
import { LIMITS } from '../../../model/limits.ts';
import { resourceNamed } from '../../../model/resources.ts';
import { MAPPED_BYTES_MAX, retryWhileBusy } from '../../../sql/sqlite/connection.ts';
import { openSharedReadTransaction } from '../../../sql/sqlite/shared_read_transaction.ts';
import { openSqliteReading } from '../../../sql/sqlite/transactions.ts';
import type { ReaderSearchRequest } from '../lists/realm_search.ts';
import { openSqliteLists, openSqliteSearches } from './lists.ts';

/**
 * Opens a database read-only, for reads that would block the serving process for too long. Another process must have migrated it, and
 * must have it open.
 */
export async function openReader(path: string) {
  const db = await retryWhileBusy(() => connectToRead(path), LIMITS.migrationWaitMsMax);
  const sharedReads = openSharedReadTransaction(db);
  const lists = openSqliteLists(db, sharedReads);
  const search = openSqliteSearches(openSqliteReading(db, sharedReads));
  return {
    answer: lists.serve,
    /** Searches all realms. */
    search: async ({ resource, search: wanted }: ReaderSearchRequest) =>
      search(resourceNamed(resource), wanted),
    close(): void {
      sharedReads.close();
      db.close(false);
    },
  };
}

/** Opens a read-only connection. A process must have the database open. */
export function connectToRead(path: string): Database {
  const db = new Database(path, { readonly: true, strict: true });
  try {
    db.run('pragma busy_timeout = 0');
    db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
    return db;
  } catch (error) {
    db.close(false);
    throw error;
  }
}
