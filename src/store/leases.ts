import { all, execute, type Long, type SqlValue } from './transaction_work.ts';
import type { Transactions } from './transactions.ts';

/** The right of one process at a time, on any machine, to do a job for all. */
export interface Lease {
  readonly name: string;
  /** A unique ID of the process that has it. */
  readonly holder: string;
  /** The expiry, renewed by the holder and by its clock, in milliseconds since the epoch. */
  readonly until: number;
}

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
export function openLeaseStore({ read, write }: Transactions) {
  /** Returns whether the statement changed the row of a lease. */
  const change = (text: string, ...values: readonly SqlValue[]) =>
    write([], function* () {
      const value = (yield* execute(text, ...values)) === 1;
      return { value, keep: value };
    });

  return {
    release: (name: string, holder: string) => change(RELEASE, name, holder),
    list: () =>
      read(function* () {
        const rows = yield* all<LeaseRow>(ALL);
        return rows.map(({ name, holder, until }): Lease => ({ name, holder, until: Number(until) }));
      }),
    /** Writes a lease if the stored one is still `expected` (undefined: none). Returns whether it did. */
    replace: ({ name, holder, until }: Lease, expected: Lease | undefined) =>
      expected
        ? change(REPLACE, holder, until, name, expected.holder, expected.until)
        : change(INSERT, name, holder, until),
    /** Extends a lease that this holder still has. Returns whether it does. */
    renew: (holder: string, name: string, until: number) => change(RENEW, until, name, holder),
  };
}

export type LeaseStore = ReturnType<typeof openLeaseStore>;

/** Every statement about leases. */
export const LEASE_TEXTS: readonly string[] = [RELEASE, ALL, INSERT, REPLACE, RENEW, IS_HELD];
