import type { AuditEntry } from '../../model/log/audit_entry.ts';
import { execute, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';

/** Increments the version of the access table. */
export const TOUCH_ACCESS = 'update instance set access_version = access_version + 1';

export type ChangeAccess = ReturnType<typeof openChanges>;

/** Returns a function that runs work. If the outcome is a change, it is committed with a new version of the access table. */
export function openChanges(write: Transactions['write']) {
  return <T>(
    work: () => Work<T>,
    auditEntry?: AuditEntry,
    isChange: (outcome: T) => boolean = Boolean,
  ): Promise<T> =>
    write('instance', function* () {
      const value = yield* work();
      const keep = isChange(value);
      if (keep) yield* execute(TOUCH_ACCESS);
      return { value, keep, ...(auditEntry ? { auditEntries: [auditEntry] } : {}) };
    });
}
