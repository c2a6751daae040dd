import type { Lease, LeaseStore } from '../directory/leases.ts';
import { all, execute, type Long, type Work } from './transaction_work.ts';
import type { Transactions } from './transactions.ts';

const RELEASE = 'delete from lease where name = ? and holder = ?';
const ALL = 'select name, holder, until from lease order by name';
const INSERT = 'insert into lease (name, holder, until) values (?, ?, ?) on conflict do nothing';
const REPLACE = 'update lease set holder = ?, until = ? where name = ? and holder = ? and until = ?';
const RENEW = 'update lease set until = ? where name = ? and holder = ?';
/** Whether a lease still has this holder; with a row lock, until the transaction ends. */
export const IS_HELD = 'select 1 from lease where name = ? and holder = ?';

interface LeaseRow {
  readonly name: string;
  readonly holder: string;
  readonly until: Long;
}

/** Leases as rows: the process that writes the row has the lease. */
export function openLeaseStore({ read, write }: Transactions): LeaseStore {
  function* replace({ name, holder, until }: Lease, expected: Lease | undefined): Work<boolean> {
    const count = expected
      ? yield* execute(REPLACE, holder, until, name, expected.holder, expected.until)
      : yield* execute(INSERT, name, holder, until);
    return count === 1;
  }

  return {
    release: (name, holder) =>
      write([], function* () {
        return { value: undefined, keep: (yield* execute(RELEASE, name, holder)) === 1 };
      }),
    list: () =>
      read(function* () {
        const rows = yield* all<LeaseRow>(ALL);
        return rows.map(({ name, holder, until }): Lease => ({ name, holder, until: Number(until) }));
      }),
    replace: (lease, expected) =>
      write([], function* () {
        const value = yield* replace(lease, expected);
        return { value, keep: value };
      }),
    renew: (holder, name, until) =>
      write([], function* () {
        const value = (yield* execute(RENEW, until, name, holder)) === 1;
        return { value, keep: value };
      }),
  };
}

/** Every statement about leases. */
export const LEASE_TEXTS: readonly string[] = [RELEASE, ALL, INSERT, REPLACE, RENEW, IS_HELD];
