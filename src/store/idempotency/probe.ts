import type { Store } from '../../directory/store.ts';
import type { Transactions } from '../transactions.ts';
import { first } from '../work.ts';

const PROBE = 'select store_id from instance';

/** Whether a read would succeed. */
export function openProbe({ read }: Pick<Transactions, 'read'>): Store['ready'] {
  return () =>
    read(function* () {
      yield* first(PROBE);
    });
}
