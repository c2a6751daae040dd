import { Database } from 'bun:sqlite';
import type { RealmSearchPage } from '../../directory/store.ts';
import { LIMITS } from '../../domain/limits.ts';
import { resourceNamed } from '../../domain/resources.ts';
import { type CountRequest, openCountBelow } from '../lists/count_below.ts';
import type { ReaderListRequest, ReaderListResponse } from '../lists/lists.ts';
import type { ReaderSearchRequest } from '../lists/realm_search.ts';
import { MAPPED_BYTES_MAX, retryWhileBusy } from './connection.ts';
import { openSqliteLists, openSqliteSearches } from './lists.ts';
import { openSharedReadTransaction } from './shared_read_transaction.ts';
import { openSqliteReading } from './transactions.ts';

/** Runs reads that would block the serving process for too long. */
export interface Reader {
  answer(request: ReaderListRequest): Promise<ReaderListResponse>;
  /** Searches all realms. */
  search(request: ReaderSearchRequest): Promise<RealmSearchPage>;
  /** Counts the records that a delete would remove together with a record. */
  count(request: CountRequest): Promise<number>;
  close(): void;
}

/** Opens a database read-only. Another process must have migrated it, and must have it open. */
export async function openReader(path: string): Promise<Reader> {
  const db = await retryWhileBusy(() => connectToRead(path), LIMITS.migrationWaitMsMax);
  const sharedReads = openSharedReadTransaction(db);
  const lists = openSqliteLists(db, sharedReads);
  const reading = openSqliteReading(db, sharedReads);
  const search = openSqliteSearches(reading);
  const count = openCountBelow(reading);
  return {
    answer: lists.serve,
    search: async ({ resource, search: wanted }) => search(resourceNamed(resource), wanted),
    count: async ({ resource, key }) => count(resourceNamed(resource), key),
    close() {
      sharedReads.close();
      db.close(false);
    },
  };
}

/** Opens a read-only connection. Another process must have the database open. */
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
