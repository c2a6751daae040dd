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
