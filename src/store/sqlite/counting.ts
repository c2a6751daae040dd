import type { Database } from 'bun:sqlite';
import type { Store } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import type { Key, Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { dependentsOf } from '../cascade.ts';
import { readFrom } from './connection.ts';
import { lazyStatements } from './prepared.ts';
import type { Snapshot } from './snapshot.ts';

/** What is asked of another process about what goes along with a record. Plain data. */
export interface CountQuestion {
  /** The name of the resource. */
  readonly resource: string;
  readonly key: Key;
}

/** Counts here, however many there are: for processes that have nothing else to answer meanwhile. */
export function openCounting(db: Database, snapshot: Snapshot): Store['countBelow'] {
  const lazily = lazyStatements(db);
  return (resource, key) =>
    readFrom(snapshot, () =>
      dependentsOf(resource, RESOURCES).reduce(
        (sum, { count }) => sum + Number(lazily(count).get(key[0], key.at(-1) as Uuid)?.n),
        0,
      ),
    );
}

/** The resource of that name. Throws where there is none: that is a bug of who asks. */
export function resourceOf(name: string): Resource {
  const found = RESOURCES.find((resource) => resource.name === name);
  if (!found) throw new Error(`no resource ${name}`);
  return found;
}
