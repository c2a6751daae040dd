import type { Call } from '../http/pipeline/call.ts';
import { type CounterLog, openCounterLog } from '../log/counters.ts';
import { openRefusedAccessLog } from '../log/refused_access.ts';
import type { Clock } from '../model/id.ts';
import type { IpAddress } from '../model/ip_address.ts';
import { LIMITS } from '../model/limits.ts';
import { type AuditEntry, createAuditEntry } from '../model/log/audit_entry.ts';
import type { Log } from '../ops/process/log.ts';
import { backgroundFault } from './background_fault.ts';
import type { ServiceContext } from './service_context.ts';

export type UsageTracking = ReturnType<typeof openUsageTracking>;

/** Records the use of clients, grants of tokens, sign-ins, refused requests, and proxies that do not name the client. */
export function openUsageTracking({ engine, log, clock }: Pick<ServiceContext, 'engine' | 'log' | 'clock'>) {
  const { append } = engine.log;
  const { recordClientUsage } = engine.access;
  const onError = (error: unknown) => log.write(backgroundFault('counter log', error));
  const counters = openCounterLog({ append, recordClientUsage }, clock, {
    onPending: (entries) => log.write({ event: 'audit_entries_pending', ...entries }),
    onError,
  });
  /** For what is answered the same without an entry. */
  const addQuietly: CounterLog['add'] = (...event) => counters.add(...event)?.catch(onError);
  const refusals = openRefusedAccessLog({ add: addQuietly }, clock.now);

  return {
    onUnreadableProxy: proxyReporter(addQuietly, log, clock),
    async granted(entry: AuditEntry): Promise<void> {
      const { object: clientId = '', detail } = entry;
      if (detail.grant === undefined) counters.use(clientId);
      await counters.add(`${clientId} ${detail.grant}`, entry);
    },
    signedIn: (entry: AuditEntry) => counters.add(`${entry.realm} ${entry.object}`, entry),
    throttled: refusals.countThrottled,
    /** Counts the use of a token by its secret, or a refused call, before the call is answered. */
    listener(call: Call): Promise<void> | undefined {
      const { principal, refused, client } = call;
      if (principal !== undefined && !principal.implicit) counters.use(principal.clientId);
      if (refused === undefined) return undefined;
      const named = principal?.clientId ?? client;
      // An ID alone is no credential, because every caller can know it.
      const isAuthenticated = refused !== 'bad credentials' && !principal?.implicit;
      const [clientId, target] = isAuthenticated ? [named, undefined] : [undefined, named];
      return refusals.count({ clientId, target, address: call.address() }, refused);
    },
    stop: counters.stop,
  };
}

/**
 * Reports proxies without a readable client address, at most one of them a minute: in the log of the process, which has no
 * addresses, and in the audit log, from which `doctor` names the proxy.
 */
function proxyReporter(add: CounterLog['add'], log: Log, { now, monotonic }: Clock) {
  let reportedAt = Number.NEGATIVE_INFINITY;
  return (proxy: IpAddress): void => {
    if (monotonic() - reportedAt < LIMITS.counterLogMs) return;
    reportedAt = monotonic();
    log.write({ event: 'client_address_unknown' });
    const caller = { actor: 'authrealm', address: proxy, requestId: undefined };
    void add(proxy, createAuditEntry('proxy.unreadable', { detail: {} }, { now, caller }));
  };
}
