import type { Store } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import type { Key } from '../../domain/resource.ts';
import type { Dialect } from '../dialect.ts';
import { openCascades } from '../records/cascade.ts';
import { first } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';

/** A request to a reader process for the number of a record's dependents. Plain data. */
export interface CountRequest {
  /** The name of the resource. */
  readonly resource: string;
  readonly key: Key;
}

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
