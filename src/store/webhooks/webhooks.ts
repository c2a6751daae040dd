import { Fault } from '../../domain/fault.ts';
import { NIL_UUID, type Revision, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { ciphertextKeyId } from '../../domain/text/ciphertext.ts';
import type { Webhook, WebhookStore } from '../../events/webhooks/port.ts';
import { IS_KEY_KNOWN } from '../auth/access.ts';
import type { RowMacs } from '../auth/row_macs.ts';
import type { Dialect, LogIds } from '../dialect.ts';
import { all, execute, first, type Long, type SqlValue, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { openDeliveries } from './deliveries.ts';
import { openProgressStore } from './progress.ts';

const SELECT = `select webhook_id, name, url, events, all_realms, with_data, events_max, skipped_client, secret_sealed,
  previous_sealed, previous_expires_at, disabled_at, created_at, updated_at, revision, mac from webhook`;
const LIST = `${SELECT} order by created_at, webhook_id`;
const ONE = `${SELECT} where webhook_id = ?`;
const REALMS = 'select webhook_id, realm_id from webhook_realm';
const REALMS_OF_ONE = `${REALMS} where webhook_id = ?`;
const COUNT = 'select count(*) as n from webhook';
const INSERT = `insert into webhook (name, url, events, all_realms, with_data, events_max, skipped_client, disabled_at,
  created_at, updated_at, revision, secret_sealed, previous_sealed, previous_expires_at, mac, webhook_id)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const UPDATE = `update webhook set name = ?, url = ?, events = ?, all_realms = ?, with_data = ?, events_max = ?,
  skipped_client = ?, disabled_at = ?, created_at = ?, updated_at = ?, revision = ?,
  mac = ? where webhook_id = ? and revision = ?`;
const ROTATE = `update webhook set secret_sealed = ?, previous_sealed = ?, previous_expires_at = ?, updated_at = ?,
  revision = ?, mac = ? where webhook_id = ? and revision = ? and secret_sealed = ?`;
const REMOVE = 'delete from webhook where webhook_id = ? and revision = ?';
const CLEAR_REALMS = 'delete from webhook_realm where webhook_id = ?';
const INSERT_REALM = 'insert into webhook_realm (webhook_id, realm_id) values (?, ?)';
const INTO_PROGRESS =
  'insert into webhook_progress (webhook_id, realm_id, seq, attempts, next_at, failed_seq)';
const ANY_REALM = 'join realm_clock k on k.realm_id <> ?';
const LISTED_REALM = `join realm_clock k on k.realm_id in
  (select r.realm_id from webhook_realm r where r.webhook_id = w.webhook_id)`;
/** Starts after the newest change, unless the target has progress. */
const BEGIN = `${INTO_PROGRESS} select w.webhook_id, k.realm_id, k.seq, 0, 0, 0 from webhook w`;
const BEGIN_TEXTS = {
  all: `${BEGIN} ${ANY_REALM} where w.webhook_id = ? on conflict do nothing`,
  listed: `${BEGIN} ${LISTED_REALM} where w.webhook_id = ? on conflict do nothing`,
};
/** Starts before the oldest stored change. */
const beginOldestTexts = ({ encoded }: LogIds): typeof BEGIN_TEXTS => {
  const ofRealm = `e.realm_id = ${encoded('k.realm_id')}`;
  const begin = `${INTO_PROGRESS} select w.webhook_id, k.realm_id,
    coalesce((select e.seq from log_entry e where ${ofRealm} order by e.seq limit 1), k.seq + 1) - 1, 0, 0, 0
    from webhook w`;
  return {
    all: `${begin} ${ANY_REALM} where w.webhook_id = ? on conflict do nothing`,
    listed: `${begin} ${LISTED_REALM} where w.webhook_id = ? on conflict do nothing`,
  };
};
/** Starts before the first change, in realms of the target without progress: those created after it. */
const CONTINUE = `${INTO_PROGRESS} select w.webhook_id, k.realm_id, 0, 0, 0, 0 from webhook w`;
const CONTINUE_ALL = `${CONTINUE} ${ANY_REALM} where w.webhook_id = ? and w.all_realms = 1 on conflict do nothing`;
const CONTINUE_LISTED = `${CONTINUE} ${LISTED_REALM} where w.webhook_id = ? and w.all_realms = 0 on conflict do nothing`;
/** A realm that is added again later starts from the present. */
const DELETE_UNLISTED = `delete from webhook_progress where webhook_id = ?
  and realm_id not in (select realm_id from webhook_realm where webhook_id = ?)`;
const IS_UNCHANGED = 'select 1 from webhook where webhook_id = ? and revision = ?';
const OF_TARGET = ['webhook_realm', 'webhook_progress', 'delivery', 'dead_letter'].map(
  (table) => `delete from ${table} where webhook_id = ?`,
);

/** Webhook targets and their deliveries. */
export function openWebhookStore(transactions: Transactions, dialect: Dialect, macs: RowMacs): WebhookStore {
  const { read, write } = transactions;
  const selectUnchanged = `${IS_UNCHANGED}${dialect.rowLocks.exclusive}`;
  const oldestTexts = beginOldestTexts(dialect.logIds);

  return {
    ...openDeliveries(transactions, dialect),
    ...openProgressStore(transactions, dialect),
    list: () => read(() => readWebhooks(macs)),
    find: (webhookId) => read(() => readWebhook(webhookId, macs)),
    insert: (webhook, from, auditEntry) =>
      write('instance', function* () {
        const { n } = (yield* first<{ readonly n: Long }>(COUNT)) as { readonly n: Long };
        if (Number(n) >= LIMITS.webhooksMax) return { value: false, keep: false };
        yield* assertKnownKey(webhook);
        yield* execute(
          INSERT,
          ...plainColumns(webhook),
          ...secretColumns(webhook),
          macOf(webhook, macs),
          webhook.webhookId,
        );
        yield* replaceRealms(webhook);
        yield* begin(webhook, from === 'present' ? BEGIN_TEXTS : oldestTexts);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
    update: (webhook, found, auditEntry) =>
      write('instance', function* () {
        // The progress of a target has a row for each of its realms.
        const hasOtherRealms = listedRealms(webhook) !== listedRealms(found);
        if (hasOtherRealms) yield* addMissingProgress(webhook);
        const count = yield* execute(
          UPDATE,
          ...plainColumns(webhook),
          macOf(webhook, macs),
          webhook.webhookId,
          found.revision,
        );
        if (count !== 1) return { value: false, keep: false };
        if (hasOtherRealms) yield* moveToRealms(webhook);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
    rotate: (webhook, { revision, secretSealed }, auditEntry) =>
      write('instance', function* () {
        yield* assertKnownKey(webhook);
        const count = yield* execute(
          ROTATE,
          ...secretColumns(webhook),
          ...[webhook.updatedAt, webhook.revision, macOf(webhook, macs)],
          ...[webhook.webhookId, revision, secretSealed],
        );
        return { value: count === 1, keep: count === 1, auditEntries: [auditEntry] };
      }),
    remove: (webhookId, expected, auditEntry) =>
      write('instance', function* () {
        // First, so that no delivery results are stored meanwhile.
        if (!(yield* first(selectUnchanged, webhookId, expected))) return { value: false, keep: false };
        for (const text of OF_TARGET) yield* execute(text, webhookId);
        const count = yield* execute(REMOVE, webhookId, expected);
        return { value: count === 1, keep: count === 1, auditEntries: [auditEntry] };
      }),
  };
}

interface RealmRow {
  readonly webhook_id: string;
  readonly realm_id: Uuid;
}

export function* readWebhooks(macs: RowMacs): Work<readonly Webhook[]> {
  const realms = Map.groupBy(yield* all<RealmRow>(REALMS), ({ webhook_id }) => webhook_id);
  return (yield* all<WebhookRow>(LIST)).map((row) => webhookOf(row, realms.get(row.webhook_id) ?? [], macs));
}

function* readWebhook(webhookId: string, macs: RowMacs): Work<Webhook | undefined> {
  const row = yield* first<WebhookRow>(ONE, webhookId);
  return row && webhookOf(row, yield* all<RealmRow>(REALMS_OF_ONE, webhookId), macs);
}

/** Secrets are stored only while their key has a key check: otherwise the master key was changed. */
function* assertKnownKey({ secretSealed, previous }: Webhook): Work<void> {
  for (const sealed of previous ? [secretSealed, previous.sealed] : [secretSealed]) {
    if (yield* first(IS_KEY_KNOWN, ciphertextKeyId(sealed))) continue;
    throw new Fault('unavailable', [], new Error('the master key was changed while this process ran'));
  }
}

function* replaceRealms({ webhookId, realms }: Webhook): Work<void> {
  yield* execute(CLEAR_REALMS, webhookId);
  if (realms === '*') return;
  for (const realm of realms) yield* execute(INSERT_REALM, webhookId, realm);
}

/** Before its realms change, gives a target progress in all of its present realms, so that it continues there. */
function* addMissingProgress({ webhookId }: Webhook): Work<void> {
  yield* execute(CONTINUE_ALL, NIL_UUID, webhookId);
  yield* execute(CONTINUE_LISTED, webhookId);
}

/** Gives a target other realms: in new ones it starts from the present. */
function* moveToRealms(webhook: Webhook): Work<void> {
  yield* replaceRealms(webhook);
  yield* begin(webhook, BEGIN_TEXTS);
  if (webhook.realms !== '*') yield* execute(DELETE_UNLISTED, webhook.webhookId, webhook.webhookId);
}

function* begin({ webhookId, realms }: Webhook, texts: typeof BEGIN_TEXTS): Work<void> {
  if (realms === '*') yield* execute(texts.all, NIL_UUID, webhookId);
  else yield* execute(texts.listed, webhookId);
}

interface WebhookRow {
  readonly webhook_id: string;
  readonly name: string;
  readonly url: string;
  readonly events: string;
  readonly all_realms: number;
  readonly with_data: number;
  readonly events_max: number;
  readonly skipped_client: string | null;
  readonly secret_sealed: Uint8Array;
  readonly previous_sealed: Uint8Array | null;
  readonly previous_expires_at: Long | null;
  readonly disabled_at: Long | null;
  readonly created_at: Long;
  readonly updated_at: Long;
  readonly revision: Revision;
  readonly mac: Uint8Array | null;
}

function plainColumns(webhook: Webhook): readonly SqlValue[] {
  const { name, url, events, realms, withData, eventsMax, skippedClient } = webhook;
  return [
    ...[name, url, events === '*' ? events : events.join(' '), realms === '*' ? 1 : 0, withData ? 1 : 0],
    ...[eventsMax, skippedClient ?? null, webhook.disabledAt ?? null],
    ...[webhook.createdAt, webhook.updatedAt, webhook.revision],
  ];
}

function secretColumns({ secretSealed, previous }: Webhook): readonly SqlValue[] {
  return [secretSealed, previous?.sealed ?? null, previous?.expiresAt ?? null];
}

/** What the code of a target covers. Its secrets authenticate themselves. */
function signedValues(webhook: Webhook): readonly SqlValue[] {
  const listed = webhook.realms === '*' ? '' : listedRealms(webhook);
  return [...plainColumns(webhook), listed, webhook.previous?.expiresAt ?? null, webhook.webhookId];
}

/** The realms of a target in a fixed order; `*` for all. */
function listedRealms({ realms }: Pick<Webhook, 'realms'>): string {
  return realms === '*' ? realms : [...realms].sort().join(' ');
}

function macOf(webhook: Webhook, macs: RowMacs): Uint8Array | null {
  return macs.of('webhook', ...signedValues(webhook));
}

function webhookOf(row: WebhookRow, realms: readonly RealmRow[], macs: RowMacs): Webhook {
  const { previous_sealed, previous_expires_at } = row;
  const webhook: Webhook = {
    webhookId: row.webhook_id,
    name: row.name,
    url: row.url,
    events: row.events === '*' ? row.events : row.events.split(' '),
    realms: row.all_realms === 1 ? '*' : new Set(realms.map(({ realm_id }) => realm_id)),
    withData: row.with_data === 1,
    eventsMax: row.events_max,
    skippedClient: row.skipped_client ?? undefined,
    disabledAt: row.disabled_at === null ? undefined : Number(row.disabled_at),
    secretSealed: row.secret_sealed,
    previous:
      previous_sealed === null || previous_expires_at === null
        ? undefined
        : { sealed: previous_sealed, expiresAt: Number(previous_expires_at) },
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    revision: row.revision,
  };
  const isForged = !macs.isValid(row.mac, 'webhook', ...signedValues(webhook));
  return Object.freeze(isForged ? { ...webhook, isForged } : webhook);
}

/** Every statement about targets. */
export const webhookTexts = ({ logIds }: Pick<Dialect, 'logIds'>): readonly string[] => [
  ...[
    LIST,
    ONE,
    REALMS,
    REALMS_OF_ONE,
    COUNT,
    INSERT,
    UPDATE,
    ROTATE,
    IS_UNCHANGED,
    REMOVE,
    CLEAR_REALMS,
    INSERT_REALM,
  ],
  ...[...Object.values(BEGIN_TEXTS), ...Object.values(beginOldestTexts(logIds)), CONTINUE_ALL],
  ...[CONTINUE_LISTED, DELETE_UNLISTED, ...OF_TARGET],
];
