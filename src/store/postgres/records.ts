import type { Eraser } from '../../audit/port.ts';
import type { Loader, Scanner, Store } from '../../directory/store.ts';
import { openAdmission } from '../admission.ts';
import { openCounting } from '../lists/count_below.ts';
import { openProbe, openRecords } from '../records/records.ts';
import type { Transactions } from '../transactions.ts';
import { POSTGRES, statementsOf } from './dialect.ts';
import { openFinds } from './finds.ts';
import type { Indexes } from './indexes.ts';
import { openPostgresLists } from './lists.ts';
import type { LongReading } from './long_reading.ts';
import { openLookups } from './lookups.ts';
import { takePicture } from './picture.ts';
import type { Pool } from './pool.ts';
import type { Session } from './session.ts';
import { openReading } from './transactions.ts';

/** What waits apart: nobody who looks one record up stands behind a list or a write. */
export interface Pools {
  /** Of what every request asks first. */
  readonly access: Pool;
  readonly lookups: Pool;
  /** Of reverse lookups. */
  readonly finds: Pool;
  readonly transactions: Pool;
  /** Of lists that touch few rows. */
  readonly lists: Pool;
}

interface Rooms {
  readonly session: Session;
  readonly transactions: Transactions;
  readonly indexes: Indexes;
  /** Of all that may take long. */
  readonly readLong: LongReading['read'];
}

/** Records and their changes in a PostgreSQL database. */
export function openPostgresRecords(
  pools: Pools,
  { session: { perform, forget }, transactions, indexes, readLong }: Rooms,
): Store & Loader & Scanner & Eraser {
  const readShort = openReading(pools.lists, perform);
  const gates = { lookups: openAdmission(), finds: openAdmission() };
  return {
    ...openRecords(statementsOf, POSTGRES, transactions),
    get: openLookups(pools.lookups, gates.lookups),
    find: openFinds(pools.finds, gates.finds),
    overloaded: {
      write: transactions.isOverloaded,
      get: gates.lookups.isOverloaded,
      find: gates.finds.isOverloaded,
    },
    list: openPostgresLists({ readShort, readLong, indexes, forget }),
    countBelow: openCounting({ read: readLong }),
    ready: openProbe({ read: openReading(pools.access, perform) }),
    openSnapshot: () => takePicture(pools.transactions),
  };
}
