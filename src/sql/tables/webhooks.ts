import { table } from './table.ts';

/** The tables of webhook targets: where changes are sent, how far each target is, what was tried, and what was given up. */

export const webhookTable = table({
  name: 'webhook',
  placement: 'every node',
  columns: {
    webhook_id: 'text',
    name: 'text',
    url: 'text',
    events: 'list_or_all',
    realms: 'realms',
    with_data: 'flag',
    events_max: 'number',
    skipped_client: 'text?',
    secret_sealed: 'sealed',
    previous_sealed: 'sealed?',
    previous_expires_at: 'instant?',
    disabled_at: 'instant?',
    created_at: 'instant',
    updated_at: 'instant',
    revision: 'revision',
    mac: 'mac?',
  },
  key: ['webhook_id'],
  hasRowId: true,
});

export const progressTable = table({
  name: 'webhook_progress',
  placement: 'one node',
  columns: {
    webhook_id: 'text',
    realm_id: 'id',
    // Of the last change that was delivered or skipped.
    seq: 'long',
    // Failed attempts at the next message, and when the next one is due; both 0 if none failed.
    attempts: 'number',
    next_at: 'instant',
    // Of the last change in that message, which is sent again unchanged; 0 if none failed.
    failed_seq: 'long',
    // The time of the first change in that message; 0 if none failed.
    behind_since: 'instant',
  },
  key: ['webhook_id', 'realm_id'],
  references: [{ columns: ['webhook_id'], table: 'webhook', target: ['webhook_id'] }],
  indexes: {
    webhook_progress_due: '(webhook_id, next_at) where next_at > 0',
    webhook_progress_behind: '(webhook_id, behind_since) where behind_since > 0',
  },
});

export const deliveryTable = table({
  name: 'delivery',
  placement: 'one node',
  columns: {
    webhook_id: 'text',
    delivery_id: 'text',
    message_id: 'text',
    realm_id: 'id',
    first_seq: 'long',
    last_seq: 'long',
    attempt: 'number',
    outcome: 'text',
    status: 'number?',
    duration_ms: 'number',
    at: 'instant',
  },
  key: ['webhook_id', 'delivery_id'],
  indexes: { delivery_failed: "(webhook_id, delivery_id) where outcome <> 'delivered'" },
});

/** Changes that could not be delivered. `attempts` is 0 while they wait for redelivery. */
export const deadLetterTable = table({
  name: 'dead_letter',
  placement: 'one node',
  columns: {
    webhook_id: 'text',
    realm_id: 'id',
    first_seq: 'long',
    last_seq: 'long',
    attempts: 'number',
    at: 'instant',
  },
  key: ['webhook_id', 'realm_id', 'first_seq'],
  indexes: { dead_letter_waiting: '(webhook_id, realm_id, first_seq) where attempts = 0' },
});
