import type { Uuid } from '../../../model/id.ts';
import type { Store } from '../../../model/store.ts';
import type { Dialect } from '../../../sql/dialect.ts';
import { first } from '../../../sql/transaction_work.ts';
import type { Transactions } from '../../../sql/transactions.ts';
import { openCascades } from '../cascade.ts';

/** Counts in this process, however many there are: for processes that need not answer other requests meanwhile. */
export function openCountBelow({ read }: Pick<Transactions, 'read'>, dialect: Dialect): Store['countBelow'] {
  const cascadeOf = openCascades(dialect);
  return (resource, key) =>
    read(function* () {
      let sum = 0;
      for (const { count } of cascadeOf(resource)) {
        sum += Number((yield* first(count, key[0], key.at(-1) as Uuid))?.n);
      }
      return sum;
    });
}
