import type { Store } from '../../directory/store.ts';
import type { SequencedChange } from '../../domain/change.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import type { WriteEvents } from '../feed/write_events.ts';
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
  /** The receiver answered that it is gone for good. */
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
  /** Realms with a message on its way, or one that this process failed to send; each with the time of its first change. */
  readonly sending: Map<Uuid, number>;
  /** Aborted where nothing may be sent any more. */
  readonly signal: AbortSignal;
  /** The target as it is now. */
  webhook(): Webhook;
  /** Whether this process may still send it changes of this realm. */
  maySend(realm: Uuid): boolean;
}

export type NonEmpty<T> = readonly [T, ...T[]];

export function isNonEmpty<T>(list: readonly T[]): list is NonEmpty<T> {
  return list.length > 0;
}

/** While the database stores no results, no more is sent than this. */
const UNSTORED_DELIVERIES_MAX = 1_000;

/** The status by which a receiver says that it is gone for good. */
const GONE = 410;

/**
 * Sends as many of these changes as fit into one message. Undefined where that is not allowed any more, or this process broke it
 * off. A receiver that is gone is disabled.
 */
export async function sendMessage(
  { deps, log, signal, webhook, maySend }: DeliveryTarget,
  changes: NonEmpty<SequencedChange>,
  attempt: number,
): Promise<Delivery | undefined> {
  const [{ realm }] = changes;
  if (log.size() > UNSTORED_DELIVERIES_MAX) await log.stored();
  if (!maySend(realm)) return undefined;
  const receiver = webhook();
  const message = await writeMessage(changes, receiver, deps.writeEvents);
  const delivery = await deps.send(receiver, message, { realm, attempt, signal });
  // The receiver did not fail: this process ended it.
  if (delivery.outcome === 'unreachable' && signal.aborted) return undefined;
  log.addDelivery(delivery);
  deps.onDelivery(delivery);
  if (delivery.status === GONE) await deps.disable(receiver);
  return delivery;
}
