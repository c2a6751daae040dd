import type { Eraser } from '../../audit/port.ts';
import type { Loader, Store } from '../../directory/store.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Resource } from '../../domain/resource.ts';
import { CHANGE_ROW, type ChangeRow, changeOfRow } from '../audit/change_rows.ts';
import { openErasing } from '../audit/erase.ts';
import type { Dialect } from '../dialect.ts';
import { openIdempotencyStore } from '../idempotency/idempotency_store.ts';
import { openSealGuard } from '../idempotency/seal_guard.ts';
import type { Transactions } from '../transactions.ts';
import { all, first } from '../work.ts';
import { openCommits } from './commit.ts';
import { openGuards } from './guards.ts';
import { openLoading } from './loading.ts';
import { openPurges } from './purges.ts';
import { openRemovals } from './removal.ts';
import type { Statements } from './statements.ts';

/** What engines do in their own way: reading many records, single ones as fast as they can, and saying that they can. */
type OfEngine = 'get' | 'list' | 'find' | 'countBelow' | 'overloaded' | 'ready';

const CHANGES = `select ${CHANGE_ROW} from change where realm_id = ? and seq > ? order by seq limit ?`;

/** Records and their changes, as far as all engines keep them alike. */
export function openRecords(
  of: (resource: Resource) => Statements,
  dialect: Dialect,
  transactions: Transactions,
): Omit<Store, OfEngine> & Loader & Eraser {
  const { read, write, yieldToWriters: giveWay } = transactions;
  const purges = openPurges(of);
  const memories = openIdempotencyStore(dialect);
  const removals = openRemovals({ of, purges, memories });
  const sealGuard = openSealGuard(dialect);
  const { commit, applier } = openCommits({ of, purges, memories, sealGuard, guards: openGuards(of) });
  const load = openLoading({ of, applier, insertsTogether: dialect.insertsTogether });

  return {
    ...openErasing(of, removals, transactions),
    commit(writes, memory) {
      const realms = new Set(memory && [memory.realm]);
      for (const { key } of writes) realms.add(key[0]);
      return write([...realms], () => commit(writes, memory));
    },
    distinctValues: (resource, realm, member, limit) =>
      read(function* () {
        const text = leadingText(resource, member);
        const values: string[] = [];
        while (values.length < limit) {
          const row = yield* first<Readonly<Record<string, string>>>(text, realm, values.at(-1) ?? '');
          if (!row) break;
          values.push(row[member] as string);
        }
        return values;
      }),
    loadIdempotencyRecord: (place, now) => read(() => memories.load(place, now)),
    async sweepIdempotency(now) {
      const forgotten = await write([], function* () {
        const rows = yield* memories.deleteExpired(now, LIMITS.cascadeRecordsMax);
        return { value: rows, keep: rows > 0, rows };
      });
      if (forgotten >= LIMITS.cascadeRecordsMax) await giveWay();
      return forgotten;
    },
    remove: (removal) => write([removal.key[0]], () => removals.remove(removal)),
    async purge(removal) {
      const purged = await write([removal.key[0]], () => removals.purge(removal));
      if (purged.kind === 'purged' && !purged.isDone) await giveWay();
      return purged;
    },
    load(loads, stopAtFirst) {
      const realms = new Set(loads.map((each) => each.write.key[0]));
      return write([...realms], () => load(loads, stopAtFirst));
    },
    changes: (realm, after, limit) =>
      read(function* () {
        const rows = yield* all<ChangeRow>(CHANGES, realm, after, limit);
        return rows.map(changeOfRow);
      }),
  };
}

/** The next value behind one: as many steps into the index as there are values, however many records have each. */
export function leadingText({ table }: Resource, member: string): string {
  return `select ${member} from ${table} where realm_id = ? and ${member} > ? order by ${member} limit 1`;
}
