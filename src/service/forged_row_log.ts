import type { Webhook } from '../events/webhooks/webhook.ts';
import type { Log } from '../platform/log.ts';
import type { AuthState } from '../store/auth/access.ts';

/** Logs each forged client, realm of a client and signing key once. */
export function openForgedAccessLog(log: Pick<Log, 'write'>) {
  const report = openForgedRowLog(log);
  return ({ clients, signingKeys }: Pick<AuthState, 'clients' | 'signingKeys'>): void => {
    for (const { clientId, isForged, hasForgedRealms } of clients) {
      if (isForged) report('client', clientId);
      if (hasForgedRealms) report('client_realm', clientId);
    }
    for (const { kid, isForged } of signingKeys) if (isForged) report('signing_key', kid);
  };
}

/** Logs each forged webhook target once. */
export function openForgedWebhookLog(log: Pick<Log, 'write'>) {
  const report = openForgedRowLog(log);
  return (webhooks: readonly Webhook[]): void => {
    for (const { webhookId, isForged } of webhooks) if (isForged) report('webhook', webhookId);
  };
}

/** Logs each forged row once. */
export function openForgedRowLog(log: Pick<Log, 'write'>) {
  const known = new Set<string>();
  return (table: string, id: string): void => {
    if (known.has(`${table} ${id}`)) return;
    known.add(`${table} ${id}`);
    log.write({ event: 'forged_row', table, id });
  };
}
