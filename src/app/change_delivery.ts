import { openGuardedPost } from '../access/outbound/guarded_post.ts';
import type { Tokens } from '../access/tokens/token.ts';
import type { WriteEvents } from '../deliver/feed/read_feed.ts';
import { isDelivered, startDispatcher } from '../deliver/webhooks/dispatcher.ts';
import { testMessage } from '../deliver/webhooks/message.ts';
import { openSender } from '../deliver/webhooks/sender.ts';
import { changeWebhook } from '../deliver/webhooks/targets.ts';
import { DELIVERY_OUTCOMES, type Webhook } from '../deliver/webhooks/webhook.ts';
import { openEventWriter } from '../http/operations/change_events.ts';
import { openChangeStreams } from '../http/operations/change_streams.ts';
import { errorTrace } from '../model/error_trace.ts';
import { Fault } from '../model/fault.ts';
import { NIL_UUID } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import type { Store } from '../model/store.ts';
import { METRICS } from '../ops/metrics/declarations.ts';
import { familyOf } from '../ops/metrics/family.ts';
import type { Collector } from '../ops/metrics/metrics.ts';
import { type OutcomeCounts, openDeliveryCounts } from '../ops/metrics/outcome_counts.ts';
import { RETENTION, startRetention } from '../ops/retention.ts';
import { openLease } from '../sql/job_leases.ts';
import { backgroundFault } from './background_fault.ts';
import { openForgedRowLog } from './forged_row_log.ts';
import { outboundRules } from './outbound.ts';
import type { ServiceContext } from './service_context.ts';
import { webhookMetrics } from './service_metrics.ts';

interface ChangeDeliveryContext extends ServiceContext {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly baseUrl: string;
  readonly installation: string;
}

export type ChangeDelivery = ReturnType<typeof startChangeDelivery>;

/**
 * The change feed: delivers changes to streams and webhook targets, and deletes what is older than the retention, until it is
 * stopped. `stop` closes streams as well.
 */
export function startChangeDelivery(deps: ChangeDeliveryContext) {
  const { engine, store, tokens, loopBudget, clock } = deps;
  const { feed } = engine;
  const writeEvents = openEventWriter(deps);
  const streams = openChangeStreams({
    store,
    feed,
    tokens,
    writeEvents,
    loopBudget,
    clock,
    onError: errorLoggerOf(deps, 'changes'),
  });
  const counts = openDeliveryCounts(DELIVERY_OUTCOMES);
  const dispatcher = startWebhooks(deps, writeEvents, counts);
  /** Of enabled targets, if this process delivers to them. */
  const lagMetrics: Collector = async () => {
    const webhooks = dispatcher.isActive() ? (await engine.webhooks.list()).filter(isDelivered) : [];
    const lags = webhooks.map(async (each) => [each.webhookId, await engine.webhooks.lag(each)] as const);
    return webhookMetrics(await Promise.all(lags), clock.now());
  };
  const streamMetrics: Collector = () => [familyOf(METRICS.changeStreams, streams.count())];
  const retention = startRetention({
    log: engine.log,
    webhooks: engine.webhooks,
    clock,
    days: deps.settings.retentionDays,
    lease: openLease(engine.leases, RETENTION, LIMITS.webhookLeaseMs, clock),
    onTampered: (log, error) => {
      deps.log.write({ event: 'retention_failed', log, cause: errorTrace(error).cause });
    },
    onError: errorLoggerOf(deps, 'retention'),
  });
  return {
    feed,
    writeEvents,
    followChanges: streams.follow,
    sendTest: dispatcher.sendTest,
    collectors: [streamMetrics, lagMetrics, counts.collect],
    async stop() {
      // Streams are requests that do not end by themselves.
      await Promise.all([streams.stop(), dispatcher.stop(), retention.stop()]);
    },
  };
}

/** Logs errors of this program. Failures of the database are logged with the requests that they affect. */
function errorLoggerOf({ log }: Pick<ChangeDeliveryContext, 'log'>, route: string): (error: unknown) => void {
  return (error) => {
    if (error instanceof Fault) return;
    log.write(backgroundFault(route, error));
  };
}

function startWebhooks(deps: ChangeDeliveryContext, writeEvents: WriteEvents, counts: OutcomeCounts) {
  const { engine, keyring, log, clock } = deps;
  const { webhooks: store } = engine;
  const logForged = openForgedRowLog(log);
  const post = openGuardedPost(outboundRules(deps));
  const caller = { actor: 'webhooks', address: undefined, requestId: undefined };
  const send = openSender(keyring, post, clock);
  const dispatcher = startDispatcher({
    store,
    changes: engine.records.changes,
    writeEvents,
    send,
    clock,
    lease: openLease(engine.leases, 'webhooks', LIMITS.webhookLeaseMs, clock),
    async disable({ webhookId }) {
      await changeWebhook({ store }, webhookId, { disabledAt: clock.now() }, { ...clock, caller });
      log.write({ event: 'webhook_disabled', webhook_id: webhookId });
    },
    onList(all) {
      for (const { webhookId, isForged } of all) if (isForged) logForged('webhook', webhookId);
      counts.retain(all.map(({ webhookId }) => webhookId));
    },
    onDelivery: ({ webhookId, outcome, durationMs }) => counts.record(webhookId, outcome, durationMs),
    onDeadLetter: (webhookId) => log.write({ event: 'webhook_dead_letter', webhook_id: webhookId }),
    onError: errorLoggerOf(deps, 'webhooks'),
  });
  /** Sends a test event to a target once. `source`: the URL of the target in the API of administration. */
  const sendTest = (webhook: Webhook, source: string) => {
    const signal = AbortSignal.timeout(LIMITS.webhookMsMax);
    return send(webhook, testMessage(webhook, source, clock), { realm: NIL_UUID, attempt: 1, signal });
  };
  return { ...dispatcher, sendTest };
}
