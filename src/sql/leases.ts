import { leaseTable } from './tables/installation.ts';
import type { StoredRow } from './tables/table.ts';
import { all, execute, type SqlValue } from './transaction_work.ts';
import type { Transactions } from './transactions.ts';

/**
 * The right of one process at a time, on any machine, to do a job for all. `holder` is a unique ID of the process that has it; it renews
 * the expiry by its own clock.
 */
export type Lease = StoredRow<typeof leaseTable>;

/** Every statement about leases. */
export const LEASE_TEXTS = {
  release: 'delete from lease where name = ? and holder = ?',
  all: `${leaseTable.select} order by name`,
  insert: `${leaseTable.insert} on conflict do nothing`,
  replace: 'update lease set holder = ?, until = ? where name = ? and holder = ? and until = ?',
  renew: 'update lease set until = ? where name = ? and holder = ?',
  /** Whether a lease still has this holder; with a row lock, until the transaction ends. */
  isHeld: 'select 1 from lease where name = ? and holder = ?',
};

/** Leases as rows: the process that writes the row has the lease. */
export function openLeaseStore({ read, write }: Transactions) {
  /** Returns whether the statement changed the row of a lease. */
  const change = (text: string, ...values: readonly SqlValue[]) =>
    write([], function* () {
      const value = (yield* execute(text, ...values)) === 1;
      return { value, keep: value };
    });

  return {
    release: (name: string, holder: string) => change(LEASE_TEXTS.release, name, holder),
    list: () =>
      read(function* () {
        return (yield* all(LEASE_TEXTS.all)).map(leaseTable.read);
      }),
    /** Writes a lease if the stored one is still `expected` (undefined: none). Returns whether it did. */
    replace: ({ name, holder, until }: Lease, expected: Lease | undefined) =>
      expected
        ? change(LEASE_TEXTS.replace, holder, until, name, expected.holder, expected.until)
        : change(LEASE_TEXTS.insert, name, holder, until),
    /** Extends a lease that this holder still has. Returns whether it does. */
    renew: (holder: string, name: string, until: number) => change(LEASE_TEXTS.renew, until, name, holder),
  };
}

export type LeaseStore = ReturnType<typeof openLeaseStore>;
