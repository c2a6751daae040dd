import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { signInBudgetTable } from '../../sql/tables/realm_data.ts';
import type { StoredRow } from '../../sql/tables/table.ts';
import { all, execute, executeAll, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';

/** A token bucket of a realm. It names no user and no address: `name` and `source` are keyed digests, or empty. */
export type BudgetKey = Pick<StoredRow<typeof signInBudgetTable>, 'name' | 'kind' | 'source'>;

/** Tokens taken from a bucket. Instants are milliseconds since the epoch. */
export interface BudgetTake extends BudgetKey {
  /** When the bucket would be full after this, if it is full now. */
  readonly fullAt: number;
  /** By how much later it is full otherwise. */
  readonly refillMs: number;
  /** The latest instant at which it can be full: a later one was stored by a clock that was set back since. */
  readonly fullAtMax: number;
}

const IS_KEY = 'name = ? and kind = ? and source = ?';
/** Selects so many buckets, which is faster than one statement for each on a database server. */
const selectFullAt = (count: number) =>
  `${signInBudgetTable.select}
  where realm_id = ? and (${new Array<string>(count).fill(`(${IS_KEY})`).join(' or ')})`;
const KEYS_MAX = 4;
const REMOVE_OF_REALM = `delete from sign_in_budget where realm_id = ?1 and (name, kind, source) in
  (select name, kind, source from sign_in_budget where realm_id = ?1 limit ?2)`;

/** Every statement about budgets. */
export const budgetTexts = ({ greatest }: Pick<Dialect, 'greatest'>) => ({
  /** By the number of buckets, less 1. */
  fullAt: Array.from({ length: KEYS_MAX }, (_, index) => selectFullAt(index + 1)),
  /** Of each kind, the bucket of a name that is full last. */
  latestOfName: `select kind, max(full_at) as full_at from sign_in_budget
    where realm_id = ? and name = ? group by kind`,
  removeName: 'delete from sign_in_budget where realm_id = ? and name = ?',
  full: `${signInBudgetTable.select} where full_at <= ? order by full_at, realm_id, name, kind, source limit ?`,
  /** Not a bucket from which was taken since. */
  deleteFull: `delete from sign_in_budget where realm_id = ? and ${IS_KEY} and full_at <= ?`,
  removeOfRealm: REMOVE_OF_REALM,
  /** Adds to the instant of a row that exists, so that concurrent takes add up. */
  take: `insert into sign_in_budget (realm_id, name, kind, source, full_at) values (?1, ?2, ?3, ?4, ?5)
    on conflict (realm_id, name, kind, source) do update set full_at = case
      when sign_in_budget.full_at > ?7 then ?7
      else ${greatest}(sign_in_budget.full_at + ?6, excluded.full_at) end`,
});

/** Deletes at most `limit` buckets of a deleted realm. Returns how many. */
export function* deleteBudgets(realmId: Uuid, limit: number): Work<number> {
  return yield* execute(REMOVE_OF_REALM, realmId, limit);
}

const valuesOf = ({ name, kind, source }: BudgetKey) => [name, kind, source] as const;

/**
 * Stores the token buckets that limit password checks (docs/guides/password-guessing.md#budgets). Writes have the
 * scope of their realm, so those of one realm never wait for each other's rows.
 */
export function openBudgetStore(
  { read, write }: Pick<Transactions, 'read' | 'write'>,
  dialect: Pick<Dialect, 'greatest'>,
) {
  const sql = budgetTexts(dialect);

  return {
    /** When each of these buckets is full again; 0 for one without a row, which is full. */
    fullAt: (realmId: Uuid, keys: readonly BudgetKey[]) =>
      read(function* () {
        const text = sql.fullAt[keys.length - 1] ?? '';
        const rows = (yield* all(text, realmId, ...keys.flatMap(valuesOf))).map(signInBudgetTable.read);
        return keys.map(({ name, kind, source }) => {
          const row = rows.find((each) => each.name === name && each.kind === kind && each.source === source);
          return row?.fullAt ?? 0;
        });
      }),
    /** Takes from several buckets in one commit. Concurrent takes of all processes add up. */
    take: (realmId: Uuid, takes: readonly BudgetTake[]) =>
      write([realmId], function* () {
        yield* executeAll(
          takes.map((each) => ({
            text: sql.take,
            values: [realmId, ...valuesOf(each), each.fullAt, each.refillMs, each.fullAtMax],
          })),
        );
        return { value: undefined, keep: true, rows: takes.length };
      }),
    /** When the last bucket of each kind is full again, of those of a name that are not full. */
    latestOfName: (realmId: Uuid, name: string) =>
      read(function* (): Work<ReadonlyMap<number, number>> {
        const rows = yield* all(sql.latestOfName, realmId, name);
        return new Map(rows.map(({ kind, full_at: fullAt }) => [Number(kind), Number(fullAt)]));
      }),
    /** Deletes all buckets of a name: they are full again. */
    removeName: (realmId: Uuid, name: string) =>
      write([realmId], function* () {
        return { value: undefined, keep: (yield* execute(sql.removeName, realmId, name)) > 0 };
      }),
    /** Deletes the rows of full buckets, at most `LIMITS.cascadeRecordsMax`. Returns how many. */
    async deleteFull(now: number): Promise<number> {
      const found = await read(() => all(sql.full, now, LIMITS.cascadeRecordsMax));
      const ofRealms = Map.groupBy(found.map(signInBudgetTable.read), ({ realm }) => realm);
      for (const [realmId, rows] of ofRealms) {
        await write([realmId], function* () {
          yield* executeAll(
            rows.map((row) => ({ text: sql.deleteFull, values: [realmId, ...valuesOf(row), now] })),
          );
          return { value: undefined, keep: true, rows: rows.length };
        });
      }
      return found.length;
    },
  };
}

export type BudgetStore = ReturnType<typeof openBudgetStore>;
