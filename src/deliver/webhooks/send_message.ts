import type { Clock, Uuid } from '../../model/id.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import type { Store } from '../../model/store.ts';
import type { WriteEvents } from '../feed/read_feed.ts';
import type { WebhookStore } from '../store/webhooks.ts';
import type { Availability } from './backoff.ts';
import { writeMessage } from './message.ts';
import type { MessageSender } from './sender.ts';
import type { Delivery, DeliveryResult, Webhook } from './webhook.ts';

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

export type UnsavedResult = Omit<DeliveryResult, 'webhookId'>;

/** A target that this process delivers to. */
export interface DeliveryTarget {
  readonly deps: DeliveryDeps;
  readonly webhookId: string;
  readonly availability: Availability;
  /** Aborted when nothing more may be sent. */
  readonly signal: AbortSignal;
  /** The target as it is now. */
  webhook(): Webhook;
  /** Whether this process may still send changes of this realm. */
  maySend(realm: Uuid): boolean;
  /** Stores the result of a message. False if this process may no longer deliver: the message is then sent again. */
  save(result: UnsavedResult): Promise<boolean>;
}

export type NonEmpty<T> = readonly [T, ...T[]];

export function isNonEmpty<T>(list: readonly T[]): list is NonEmpty<T> {
  return list.length > 0;
}

/** The status of a receiver that is permanently gone. */
const GONE = 410;

/**
 * Sends as many of these changes as fit into one message. Undefined if sending is no longer allowed, or this process aborted
 * it. A target that answers 410 is disabled.
 */
export async function sendMessage(
  { deps, availability, signal, webhook, maySend }: DeliveryTarget,
  changes: NonEmpty<SequencedChange>,
  attempt: number,
): Promise<Delivery | undefined> {
  const [{ realm }] = changes;
  if (!maySend(realm)) return undefined;
  const receiver = webhook();
  const message = await writeMessage(changes, receiver, deps.writeEvents);
  const delivery = await deps.send(receiver, message, { realm, attempt, signal });
  // This process aborted the request; the receiver did not fail.
  if (delivery.outcome === 'unreachable' && signal.aborted) return undefined;
  // The result of a message sent before a change of the target does not count.
  if (receiver.revision === webhook().revision) availability.record(delivery);
  deps.onDelivery(delivery);
  if (delivery.status === GONE) await deps.disable(receiver);
  return delivery;
}
