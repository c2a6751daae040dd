import type { Database } from 'bun:sqlite';
import type { MaybePromise } from '../../directory/store.ts';
import type { Index } from '../lists/list_plans.ts';
import type { Outcome } from '../lists/list_reading.ts';
import { type Lists, openListReading, openLists, type ReadLists } from '../lists/lists.ts';
import { readFrom } from './connection.ts';
import { SQLITE, statementsOf } from './dialect.ts';
import { openSession } from './session.ts';
import type { Snapshot } from './snapshot.ts';

/** Lists over one connection. */
export function openSqliteLists(db: Database, snapshot: Snapshot): Lists {
  const { perform, forget } = openSession(db);
  const reading = openListReading({
    of: statementsOf,
    dialect: SQLITE,
    indexesOf: (table) => indexesOf(db, table),
    forget,
  });
  const read: ReadLists<Outcome> = (question, budget) => perform(reading(question, budget));
  const together = db.transaction(read);

  /** One read transaction for all statements of an answer, of its own where the snapshot shares none. */
  const within: ReadLists<MaybePromise<Outcome>> = (question, budget) =>
    readFrom(snapshot, () => (db.inTransaction ? read(question, budget) : together(question, budget)));
  return openLists(within);
}

/** The indexes of a table that hold all of its rows. */
export function indexesOf(db: Database, table: string): readonly Index[] {
  const list = db.prepare<{ name: string; unique: number }, [string]>(
    'select name, "unique" from pragma_index_list(?) where partial = 0',
  );
  const info = db.prepare<{ name: string | null }, [string]>(
    'select name from pragma_index_info(?) order by seqno',
  );
  return list.all(table).map(({ name, unique }) => ({
    name,
    columns: info.all(name).map((column) => column.name ?? ''),
    isUnique: unique === 1,
  }));
}
