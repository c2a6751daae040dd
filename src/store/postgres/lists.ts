import type { Store } from '../../directory/store.ts';
import { openListReading, openLists } from '../lists/lists.ts';
import type { Transactions } from '../transactions.ts';
import { POSTGRES, postgresStatements } from './dialect.ts';
import { postgresIndexesOf } from './indexes.ts';
import type { PostgresSession } from './session.ts';

interface ListDeps {
  /** Reads lists that touch few rows. */
  readonly readShort: Transactions['read'];
  /** Reads all other lists, in a separate queue. */
  readonly readLong: Transactions['read'];
  readonly forget: PostgresSession['forget'];
}

export function openPostgresLists({ readShort, readLong, forget }: ListDeps): Store['list'] {
  const reading = openListReading({
    of: postgresStatements,
    dialect: POSTGRES,
    indexesOf: postgresIndexesOf,
    forget,
  });
  return openLists(reading, readShort).delegating(openLists(reading, readLong).serve);
}
