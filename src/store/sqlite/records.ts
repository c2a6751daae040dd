import type { Database } from 'bun:sqlite';
import type { Eraser } from '../../audit/port.ts';
import type { Loader, Scanner, Store } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import type { Key, RecordOf, Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { openCounting } from '../lists/count_below.ts';
import { openProbe, openRecords } from '../records/records.ts';
import type { SqlValue } from '../records/statements.ts';
import type { Transactions } from '../transactions.ts';
import { readFrom } from './connection.ts';
import { SQLITE, statementsOf } from './dialect.ts';
import { openFinds } from './finds.ts';
import { openSqliteLists } from './lists.ts';
import { takePicture } from './picture.ts';
import { atSlot, slotOf } from './slot.ts';
import type { Snapshot } from './snapshot.ts';

/** Records and their changes in one SQLite file. */
export function openSqliteRecords(
  db: Database,
  snapshot: Snapshot,
  transactions: Transactions,
): Store & Loader & Scanner & Eraser {
  return {
    ...openRecords(statementsOf, SQLITE, transactions),
    get: openGet(db, snapshot),
    find: openFinds(db, snapshot),
    list: openSqliteLists(db, snapshot).here,
    countBelow: openCounting(transactions),
    overloaded: { write: transactions.isOverloaded },
    ready: openProbe(transactions),
    openSnapshot: () => takePicture(db),
  };
}

/** The lookup by ID: one statement in the slot where the record mostly lies, else one more. */
function openGet(db: Database, snapshot: Snapshot): Store['get'] {
  const prepared = new Map(
    RESOURCES.map((resource) => {
      const { select, decode } = statementsOf(resource);
      return [resource, { select: prepare(db, select), selectAt: prepare(db, atSlot(select)), decode }];
    }),
  );
  return <R extends Resource>(resource: R, key: Key) => {
    const found = prepared.get(resource);
    if (!found) throw new Error(`${resource.name} has no table`);
    const { select, selectAt, decode } = found;
    const slot = slotOf(key.at(-1) as Uuid);
    return readFrom(snapshot, () => {
      const row = selectAt.get(...key, slot) ?? select.get(...key);
      return row ? (decode(row) as unknown as RecordOf<R>) : undefined;
    });
  };
}

function prepare(db: Database, text: string) {
  return db.prepare<Record<string, unknown>, SqlValue[]>(text);
}
