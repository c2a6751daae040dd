import type { Store } from '../../directory/store.ts';
import { openListReading, openLists } from '../lists/lists.ts';
import type { Transactions } from '../transactions.ts';
import { POSTGRES, statementsOf } from './dialect.ts';
import type { Indexes } from './indexes.ts';
import type { Session } from './session.ts';

interface Rooms {
  /** Of what touches few rows. */
  readonly readShort: Transactions['read'];
  /** Of all the rest, which waits apart. */
  readonly readLong: Transactions['read'];
  readonly indexes: Indexes;
  readonly forget: Session['forget'];
}

export function openPostgresLists({ readShort, readLong, indexes, forget }: Rooms): Store['list'] {
  const reading = openListReading({ of: statementsOf, dialect: POSTGRES, indexesOf: indexes.of, forget });
  const short = openLists((question, budget) => readShort(() => reading(question, budget)));
  const long = openLists((question, budget) => readLong(() => reading(question, budget)));
  return short.beside(long.answer);
}
