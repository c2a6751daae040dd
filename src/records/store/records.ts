import { CHANGE_COLUMNS, type ChangeRow, changesIn, runEndText } from '../../log/store/entry_row.ts';
import { type Eraser, openErasing } from '../../log/store/erase.ts';
import type { RowMacs } from '../../log/store/row_macs.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Resource } from '../../model/resource.ts';
import type { Loader, Store } from '../../model/store.ts';
import { withPasswordMacs } from '../../sign_in/store/password_macs.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { all } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import { openCommits } from './commit.ts';
import { openSignInEnds } from './ended_sign_ins.ts';
import { openIdempotencyStore } from './idempotency.ts';
import { openLoading } from './loading.ts';
import { openRemovals } from './removal.ts';
import type { Statements } from './statements.ts';

const changesText = ({ realm }: Dialect): string =>
  `select ${CHANGE_COLUMNS} from log_entry where realm_id = ${realm('?')} and seq > ? order by seq limit ?`;

/** Records and their changes, but for reads, and whether they are ready or overloaded, which each engine implements itself. */
export function openRecords(
  plainStatements: (resource: Resource) => Statements,
  dialect: Dialect,
  transactions: Transactions,
  macs: RowMacs,
) {
  const { read, write, yieldToWriters } = transactions;
  const changes = changesText(dialect);
  const runEnd = runEndText(dialect);
  const of = withPasswordMacs(plainStatements, dialect, macs);
  const idempotency = openIdempotencyStore(dialect);
  const removals = openRemovals(of, dialect);
  const endSignIns = openSignInEnds(of, dialect);
  const commit = openCommits({ of, dialect, removals, idempotency, endSignIns });
  const { getStored, load } = openLoading(of, transactions, endSignIns);

  return {
    ...openErasing(removals, transactions, dialect),
    commit(writes, answer) {
      const realms = new Set(answer && [answer.realm]);
      for (const { key } of writes) realms.add(key[0]);
      return write([...realms], () => commit(writes, answer));
    },
    loadIdempotencyRecord: (key, now) => read(() => idempotency.load(key, now)),
    async sweepIdempotency(now) {
      const deleted = await write([], function* () {
        const rows = yield* idempotency.deleteExpired(now, LIMITS.cascadeRecordsMax);
        return { value: rows, keep: rows > 0, rows };
      });
      if (deleted >= LIMITS.cascadeRecordsMax) await yieldToWriters();
      return deleted;
    },
    async removePage(removal) {
      const page = await write([removal.key[0]], () => removals.removePage(removal));
      if (page.kind === 'removed' && !page.isDone) await yieldToWriters();
      return page;
    },
    load,
    getStored: (resource, key) => read(() => getStored(resource, key)),
    changes: (realm, after, limit) =>
      read(function* () {
        const rows = yield* all<ChangeRow>(changes, realm, after, limit);
        return yield* changesIn(realm, rows, runEnd);
      }),
  } satisfies Partial<Store> & Loader & Eraser;
}

/** Reads one row, to prove that a read succeeds. */
export const PROBE = 'select store_id from instance';
