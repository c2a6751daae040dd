import { assertKeyIsKnown } from '../../access/store/access.ts';
import type { RowMacs } from '../../log/store/row_macs.ts';
import { NIL_UUID, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import type { LoggedChange } from '../../model/managed.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { type EncodedRow, valuesIn } from '../../sql/tables/table.ts';
import { progressTable, webhookTable } from '../../sql/tables/webhooks.ts';
import { all, execute, first, type Long, type Row, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import type { Webhook } from '../webhooks/webhook.ts';
import { openDeliveries } from './deliveries.ts';
import { openProgressStore } from './progress.ts';

/** Gives a target progress after a position in the clocks that match, where it has none. */
const progressAfter = (position: string, matches: string): string =>
  `insert into webhook_progress (${progressTable.names})
    select ?, k.realm_id, ${position}, 0, 0, 0, 0 from realm_clock k where ${matches} on conflict do nothing`;
const PRESENT = 'k.seq';
const oldest = (realm: Dialect['realm']): string => `coalesce((select e.seq from log_entry e
  where e.realm_id = ${realm('k.realm_id')} order by e.seq limit 1), k.seq + 1) - 1`;

/** Every statement about targets. */
export const webhookTexts = ({ realm, rowLocks, lists: { isAmong } }: Dialect) => ({
  list: `${webhookTable.select} order by created_at, webhook_id`,
  one: `${webhookTable.select} where webhook_id = ?`,
  count: 'select count(*) as n from webhook',
  insert: webhookTable.insert,
  /** So that no delivery results are stored meanwhile. */
  locked: `${webhookTable.select} where webhook_id = ?${rowLocks.exclusive}`,
  update: `${webhookTable.update} where webhook_id = ?`,
  presentInOthers: progressAfter(PRESENT, `not (${isAmong('k.realm_id')})`),
  presentAmong: progressAfter(PRESENT, isAmong('k.realm_id')),
  oldestInOthers: progressAfter(oldest(realm), `not (${isAmong('k.realm_id')})`),
  oldestAmong: progressAfter(oldest(realm), isAmong('k.realm_id')),
  /** A realm that is added again later starts from the present. */
  removeUnlisted: `delete from webhook_progress where webhook_id = ? and not (${isAmong('realm_id')})`,
  removeProgress: 'delete from webhook_progress where webhook_id = ?',
  removeDeliveries: 'delete from delivery where webhook_id = ?',
  removeDeadLetters: 'delete from dead_letter where webhook_id = ?',
  remove: 'delete from webhook where webhook_id = ?',
});

/** Webhook targets and their deliveries. Every change of a target is committed with its audit entry. */
export function openWebhookStore(transactions: Transactions, dialect: Dialect, macs: RowMacs) {
  const { read, write } = transactions;
  const { among } = dialect.lists;
  const sql = webhookTexts(dialect);

  /** Begins in the realms of a target but for those that it had. */
  function* begin(
    { webhookId, realms }: Webhook,
    from: 'present' | 'oldest',
    had: ReadonlySet<Uuid> = new Set(),
  ): Work<void> {
    if (realms === '*') yield* execute(sql[`${from}InOthers`], webhookId, among([NIL_UUID, ...had]));
    else yield* execute(sql[`${from}Among`], webhookId, among([...realms].filter((each) => !had.has(each))));
  }

  /** A target continues in the realms that it had, also where it has no progress yet. */
  function* changeRealms(found: Webhook, after: Webhook): Work<void> {
    if (found.realms !== '*') yield* begin(after, 'present', found.realms);
    if (after.realms !== '*') yield* execute(sql.removeUnlisted, after.webhookId, among([...after.realms]));
  }

  return {
    ...openDeliveries(transactions, dialect),
    ...openProgressStore(transactions, dialect),
    /** All targets, oldest first. */
    list: () =>
      read(function* () {
        return (yield* all(sql.list)).map((row) => webhookOf(row, macs));
      }),
    find: (webhookId: string) =>
      read(function* () {
        const row = yield* first(sql.one, webhookId);
        return row && webhookOf(row, macs);
      }),
    /**
     * Adds a target. It receives changes from now on, or with `oldest` all stored changes. Returns false if there are
     * LIMITS.webhooksMax already.
     */
    insert: (webhook: Webhook, from: 'present' | 'oldest', auditEntry: AuditEntry) =>
      write('instance', function* () {
        const { n } = (yield* first<{ readonly n: Long }>(sql.count)) as { readonly n: Long };
        if (Number(n) >= LIMITS.webhooksMax) return { value: false, keep: false };
        yield* assertKeysAreKnown(webhook);
        yield* execute(sql.insert, ...Object.values(signedRow(webhook, macs)));
        yield* begin(webhook, from);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
    /**
     * Replaces a target by what `edit` makes of it; returns it as it then is, or undefined if there is none. In newly added realms
     * it receives changes from now on. Also writes the secrets as they were read: a change of the master key writes in the same scope.
     */
    change: (webhookId: string, edit: (found: Webhook) => LoggedChange<Webhook> | undefined) =>
      write('instance', function* () {
        const row = yield* first(sql.one, webhookId);
        const found = row && webhookOf(row, macs);
        const changed = found && edit(found);
        if (!changed) return { value: found, keep: false };
        const { after, auditEntry } = changed;
        if (after.secretSealed !== found.secretSealed) yield* assertKeysAreKnown(after);
        yield* execute(sql.update, ...valuesIn(signedRow(after, macs), webhookTable.updated), webhookId);
        if (!Bun.deepEquals(after.realms, found.realms)) yield* changeRealms(found, after);
        return { value: after, keep: true, auditEntries: [auditEntry] };
      }),
    /** Deletes a target with its deliveries and progress; false if there is none. `entryOf` may throw to keep it. */
    remove: (webhookId: string, entryOf: (found: Webhook) => AuditEntry) =>
      write('instance', function* () {
        const row = yield* first(sql.locked, webhookId);
        if (!row) return { value: false, keep: false };
        const auditEntry = entryOf(webhookOf(row, macs));
        const { removeProgress, removeDeliveries, removeDeadLetters, remove } = sql;
        for (const text of [removeProgress, removeDeliveries, removeDeadLetters, remove])
          yield* execute(text, webhookId);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
  };
}

export type WebhookStore = ReturnType<typeof openWebhookStore>;

function* assertKeysAreKnown({ secretSealed, previous }: Webhook): Work<void> {
  for (const sealed of [secretSealed, previous?.sealed]) yield* assertKeyIsKnown(sealed);
}

/** Its HMAC covers all but its secrets, which authenticate themselves. */
function signedRow(webhook: Webhook, macs: RowMacs): EncodedRow {
  const { sealed: previousSealed, expiresAt: previousExpiresAt } = webhook.previous ?? {};
  // In one order, so that the same realms are the same text.
  const realms = webhook.realms === '*' ? webhook.realms : new Set([...webhook.realms].sort());
  return macs.signedRow(webhookTable, { ...webhook, realms, previousSealed, previousExpiresAt });
}

function webhookOf(row: Row, macs: RowMacs): Webhook {
  const { previousSealed: sealed, previousExpiresAt: expiresAt, ...others } = webhookTable.read(row);
  const isForged = macs.isRowForged(webhookTable, row);
  return Object.freeze({
    ...others,
    previous: sealed && expiresAt !== undefined ? { sealed, expiresAt } : undefined,
    ...(isForged ? { isForged } : {}),
  });
}
