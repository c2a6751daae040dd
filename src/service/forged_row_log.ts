import type { AuthState } from '../auth/port.ts';
import type { Webhook } from '../events/webhooks/port.ts';
import type { Log } from '../platform/log.ts';

/** Logs each forged row once. */
export interface ForgedRowLog {
  readonly access: (state: Pick<AuthState, 'clients' | 'signingKeys'>) => void;
  readonly webhooks: (webhooks: readonly Webhook[]) => void;
}

export function openForgedRowLog(log: Pick<Log, 'write'>): ForgedRowLog {
  const known = new Set<string>();
  function report(table: string, id: string): void {
    if (known.has(`${table} ${id}`)) return;
    known.add(`${table} ${id}`);
    log.write({ event: 'forged_row', table, id });
  }
  return {
    access({ clients, signingKeys }) {
      for (const { clientId, isForged, hasForgedRealms } of clients) {
        if (isForged) report('client', clientId);
        if (hasForgedRealms) report('client_realm', clientId);
      }
      for (const { kid, isForged } of signingKeys) if (isForged) report('signing_key', kid);
    },
    webhooks(all) {
      for (const { webhookId, isForged } of all) if (isForged) report('webhook', webhookId);
    },
  };
}
