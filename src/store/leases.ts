import type { LeaseStore } from '../directory/leases.ts';
import type { Transactions } from './transactions.ts';
import { run } from './work.ts';

const TAKE = `insert into lease (name, holder, until) values (?, ?, ?)
  on conflict (name) do update set holder = excluded.holder, until = excluded.until
  where lease.holder = excluded.holder or lease.until <= ?`;
const GIVE_BACK = 'delete from lease where name = ? and holder = ?';

/** Leases as rows: whoever writes the row has it. */
export function openLeases({ write }: Transactions): LeaseStore {
  return {
    take: ({ name, holder, now, until }) =>
      write([], function* () {
        const isTaken = (yield* run(TAKE, name, holder, until, now)) === 1;
        return { value: isTaken, keep: isTaken };
      }),
    giveBack: (name, holder) =>
      write([], function* () {
        return { value: undefined, keep: (yield* run(GIVE_BACK, name, holder)) === 1 };
      }),
  };
}

/** Every text about leases. */
export const LEASE_TEXTS: readonly string[] = [TAKE, GIVE_BACK];
