import type { Store } from '../../directory/store.ts';
import { openListReading, openLists } from '../lists/lists.ts';
import type { Transactions } from '../transactions.ts';
import { POSTGRES, postgresStatements } from './dialect.ts';
import type { IndexCatalog } from './indexes.ts';
import type { PostgresSession } from './session.ts';

interface ListDeps {
  /** Of what touches few rows. */
  readonly readShort: Transactions['read'];
  /** Of all the rest, which waits apart. */
  readonly readLong: Transactions['read'];
  readonly indexes: IndexCatalog;
  readonly forget: PostgresSession['forget'];
}

export function openPostgresLists({ readShort, readLong, indexes, forget }: ListDeps): Store['list'] {
  const reading = openListReading({
    of: postgresStatements,
    dialect: POSTGRES,
    indexesOf: indexes.of,
    forget,
  });
  const short = openLists((question, budget) => readShort(() => reading(question, budget)));
  const long = openLists((question, budget) => readLong(() => reading(question, budget)));
  return short.delegating(long.serve);
}
