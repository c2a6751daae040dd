import type { Store } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { dependentsOf } from '../cascade.ts';
import type { Transactions } from '../transactions.ts';
import { first } from '../work.ts';

/** What is asked of another process about what goes along with a record. Plain data. */
export interface CountQuestion {
  /** The name of the resource. */
  readonly resource: string;
  readonly key: Key;
}

/** Counts here, however many there are: for processes that have nothing else to answer meanwhile. */
export function openCounting({ read }: Pick<Transactions, 'read'>): Store['countBelow'] {
  return (resource, key) =>
    read(function* () {
      let sum = 0;
      for (const { count } of dependentsOf(resource, RESOURCES)) {
        sum += Number((yield* first(count, key[0], key.at(-1) as Uuid))?.n);
      }
      return sum;
    });
}

/** The resource of that name. Throws where there is none: that is a bug of who asks. */
export function resourceOf(name: string): Resource {
  const found = RESOURCES.find((resource) => resource.name === name);
  if (!found) throw new Error(`no resource ${name}`);
  return found;
}
