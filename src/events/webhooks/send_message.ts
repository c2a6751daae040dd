import type { Store } from '../../directory/store.ts';
import type { SequencedChange } from '../../domain/change.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import type { WriteEvents } from '../feed/write_events.ts';
import type { TargetBackoff } from './backoff.ts';
import type { DeliveryLog } from './delivery_log.ts';
import { writeMessage } from './message.ts';
import type { Delivery, Webhook, WebhookStore } from './port.ts';
import type { MessageSender } from './sender.ts';

export interface DeliveryDeps {
  readonly store: WebhookStore;
  readonly changes: Store['changes'];
  readonly writeEvents: WriteEvents;
  readonly send: MessageSender;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'mintId'>;
  /** Called after a 410 response. */
  readonly disable: (webhook: Webhook) => Promise<void>;
  readonly onDelivery: (delivery: Delivery) => void;
  readonly onDeadLetter: (webhookId: string) => void;
  readonly onError: (error: unknown) => void;
}

/** A target that this process delivers to. */
export interface DeliveryTarget {
  readonly deps: DeliveryDeps;
  readonly webhookId: string;
  readonly log: DeliveryLog;
  readonly backoff: TargetBackoff;
  /** Realms with a message in flight, or one that this process failed to send, with the time of its first change. */
  readonly sending: Map<Uuid, number>;
  /** Aborted when nothing more may be sent. */
  readonly signal: AbortSignal;
  /** The target as it is now. */
  webhook(): Webhook;
  /** Whether this process may still send changes of this realm. */
  maySend(realm: Uuid): boolean;
}

export type NonEmpty<T> = readonly [T, ...T[]];

export function isNonEmpty<T>(list: readonly T[]): list is NonEmpty<T> {
  return list.length > 0;
}

/** Maximum deliveries without stored results, while the database is unavailable. */
const UNSTORED_DELIVERIES_MAX = 1_000;

/** The status of a receiver that is permanently gone. */
const GONE = 410;

/**
 * Sends as many of these changes as fit into one message. Undefined if sending is no longer allowed, or this process aborted
 * it. A target that answers 410 is disabled.
 */
export async function sendMessage(
  { deps, log, backoff, signal, webhook, maySend }: DeliveryTarget,
  changes: NonEmpty<SequencedChange>,
  attempt: number,
): Promise<Delivery | undefined> {
  const [{ realm }] = changes;
  if (log.size() > UNSTORED_DELIVERIES_MAX) await log.stored();
  if (!maySend(realm)) return undefined;
  const receiver = webhook();
  const message = await writeMessage(changes, receiver, deps.writeEvents);
  const delivery = await deps.send(receiver, message, { realm, attempt, signal });
  // This process aborted the request; the receiver did not fail.
  if (delivery.outcome === 'unreachable' && signal.aborted) return undefined;
  // The result of a message sent before a change of the target does not count.
  if (receiver.revision === webhook().revision) backoff.record(delivery);
  log.addDelivery(delivery);
  deps.onDelivery(delivery);
  if (delivery.status === GONE) await deps.disable(receiver);
  return delivery;
}
