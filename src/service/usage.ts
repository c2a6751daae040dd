import { openRefusedAccessLog } from '../audit/refused_access_log.ts';
import { openTokenGrantLog } from '../audit/token_grant_log.ts';
import { openClientUsage } from '../auth/tokens/client_usage.ts';
import type { AuditEntry } from '../domain/audit_entry.ts';
import { errorTrace } from '../domain/error_trace.ts';
import type { Clock } from '../domain/id.ts';
import { openCallListener } from '../http/server/listener.ts';
import type { Log } from '../platform/log.ts';
import type { Engine } from '../store/open.ts';

/** Records the use of clients, grants of tokens, and refused requests. */
export function openUsageTracking({ access, log: entries }: Engine, log: Log, clock: Clock) {
  const uses = openClientUsage(access, clock);
  const refusals = openRefusedAccessLog(entries, clock);
  const grants = openTokenGrantLog(entries, clock, {
    onPending: ({ waiting, dropped }) =>
      log.write({ event: 'audit_entries_pending', pending: waiting, dropped }),
    onError: (error) =>
      log.write({
        ...{ event: 'fault', request_id: '', route: 'token grants', code: 'internal' },
        ...errorTrace(error),
      }),
  });
  return {
    granted(auditEntry: AuditEntry): Promise<void> {
      if (auditEntry.object !== undefined) uses.record(auditEntry.object);
      return grants.append(auditEntry);
    },
    throttled: refusals.countThrottled,
    listener: openCallListener({ used: uses.record, refused: refusals.count }),
    async stop() {
      await Promise.all([uses.stop(), refusals.stop(), grants.stop()]);
    },
  };
}
