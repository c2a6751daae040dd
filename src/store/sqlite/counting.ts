import type { Database } from 'bun:sqlite';
import { Fault } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Key } from '../../domain/resource.ts';
import type { Dependent } from '../cascade.ts';
import { asFault, readFrom, retryWhileBusy } from './connection.ts';
import { secondConnection } from './picture.ts';
import { lazyStatements } from './prepared.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * Counts what goes along with a record. A few are counted at once; many on a connection of their own, some rows a turn,
 * so that no lookup waits for all of them.
 */
export function openCounting(db: Database, snapshot: Snapshot) {
  const lazily = lazyStatements(db);
  let running = 0;

  function countFew(dependents: readonly Dependent[], key: Key): number {
    let count = 0;
    for (const { countMost } of dependents) {
      const most = LIMITS.listRecordsInTurnMax + 1 - count;
      count += Number(lazily(countMost).get(key[0], key.at(-1) as Uuid, most)?.n ?? 0);
    }
    return count;
  }

  async function countMany(dependents: readonly Dependent[], key: Key): Promise<number> {
    if (running >= LIMITS.readersMax) throw new Fault('overloaded');
    running += 1;
    try {
      return await countApart(db, dependents, key);
    } catch (error) {
      throw asFault(error);
    } finally {
      running -= 1;
    }
  }

  return async (dependents: readonly Dependent[], key: Key): Promise<number> => {
    const count = await readFrom(snapshot, () => countFew(dependents, key));
    return count > LIMITS.listRecordsInTurnMax ? countMany(dependents, key) : count;
  };
}

async function countApart(db: Database, dependents: readonly Dependent[], key: Key): Promise<number> {
  const own = await retryWhileBusy(() => secondConnection(db));
  const start = performance.now();
  let count = 0;
  try {
    for (const { each } of dependents) {
      const rows = own.prepare<unknown, [string, string]>(each).iterate(key[0], key.at(-1) as Uuid);
      for (const _ of rows) {
        count += 1;
        if (count % LIMITS.listRecordsInTurnMax !== 0) continue;
        if (performance.now() - start > LIMITS.storeWaitMsMax) throw new Fault('overloaded');
        await nextTurn();
      }
    }
    return count;
  } finally {
    own.close(false);
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
