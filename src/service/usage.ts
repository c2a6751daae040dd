import { openRefusedAccessLog } from '../audit/refused_access_log.ts';
import { openTokenGrantLog } from '../audit/token_grant_log.ts';
import { openClientUsage } from '../auth/tokens/client_usage.ts';
import { type AuditEntry, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';
import type { IpAddress } from '../domain/ip_address.ts';
import { LIMITS } from '../domain/limits.ts';
import { openCallListener } from '../http/server/listener.ts';
import type { Log } from '../platform/log.ts';
import type { Engine } from '../store/open.ts';
import { backgroundFault } from './background_fault.ts';

/** Records the use of clients, grants of tokens, refused requests, and proxies that do not name the client. */
export function openUsageTracking({ access, log: entries }: Engine, log: Log, clock: Clock) {
  const uses = openClientUsage(access, clock);
  const refusals = openRefusedAccessLog(entries, clock);
  const grants = openTokenGrantLog(entries, clock, {
    onPending: ({ waiting, dropped }) =>
      log.write({ event: 'audit_entries_pending', pending: waiting, dropped }),
    onError: (error) => log.write(backgroundFault('token grants', error)),
  });
  const proxies = openProxyReports(entries, log, clock);
  return {
    onUnreadableProxy: proxies.report,
    granted(auditEntry: AuditEntry): Promise<void> {
      const { object, detail } = auditEntry;
      if (object !== undefined && detail.grant === undefined) uses.record(object);
      return grants.append(auditEntry);
    },
    throttled: refusals.countThrottled,
    listener: openCallListener({ used: uses.record, refused: refusals.count }),
    async stop() {
      await Promise.all([uses.stop(), refusals.stop(), grants.stop(), proxies.written()]);
    },
  };
}

/**
 * Reports proxies without a readable client address, at most one of them a minute: in the log of the process, which has no
 * addresses, and in the audit log, from which `doctor` names the proxy.
 */
function openProxyReports(entries: Engine['log'], log: Log, { now, monotonic }: Clock) {
  let reportedAt = Number.NEGATIVE_INFINITY;
  let writing: Promise<void> = Promise.resolve();
  return {
    report(proxy: IpAddress): void {
      if (monotonic() - reportedAt < LIMITS.refusalLogMs) return;
      reportedAt = monotonic();
      log.write({ event: 'client_address_unknown' });
      const caller = { actor: 'authrealm', address: proxy, requestId: undefined };
      const entry = createAuditEntry('proxy.unreadable', { detail: {} }, { now, caller });
      writing = entries.append([entry]).catch((error: unknown) => {
        // The next report names the proxy again.
        if (!(error instanceof Fault)) throw error;
      });
    },
    written: () => writing,
  };
}
