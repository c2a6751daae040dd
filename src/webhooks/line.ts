import type { Store } from '../directory/store.ts';
import type { SequencedChange } from '../domain/change.ts';
import type { Ambient, Uuid } from '../domain/id.ts';
import type { WriteEvents } from '../feed/event.ts';
import type { Ledger } from './ledger.ts';
import { writeMessage } from './message.ts';
import type { Delivery, Webhook, WebhookStore } from './port.ts';
import type { Send } from './sender.ts';

export interface TellerRooms {
  readonly store: WebhookStore;
  readonly changes: Store['changes'];
  readonly writeEvents: WriteEvents;
  readonly send: Send;
  readonly ambient: Pick<Ambient, 'now' | 'monotonic' | 'mintId'>;
  /** The receiver says that it is gone for good. */
  readonly disable: (webhook: Webhook) => Promise<void>;
  readonly onDelivery: (delivery: Delivery) => void;
  readonly onGivenUp: (webhookId: string) => void;
  readonly onTrouble: (error: unknown) => void;
}

/** What leads to one receiver. */
export interface Line {
  readonly rooms: TellerRooms;
  readonly webhookId: string;
  readonly ledger: Ledger;
  /** Realms of which something is being sent, or could not be because of us, and when the first of it was made. */
  readonly underWay: Map<Uuid, number>;
  /** Aborted where nothing may be sent any more. */
  readonly signal: AbortSignal;
  /** The receiver as it is now. */
  webhook(): Webhook;
  /** Whether it may still be told about this realm, by this process. */
  mayGoOn(realm: Uuid): boolean;
}

export type Some<T> = readonly [T, ...T[]];

export function isSome<T>(list: readonly T[]): list is Some<T> {
  return list.length > 0;
}

/** Where nobody can write down what is sent, no more is sent than this. */
const UNSETTLED_MAX = 1_000;

/** The status by which a receiver says that it is gone for good. */
const GONE = 410;

/**
 * Sends as many of these changes as fit into one message, for the first time or again. Undefined where that may not be, or
 * was broken off by us. A receiver that is gone is disabled.
 */
export async function sendSome(
  { rooms, ledger, signal, webhook, mayGoOn }: Line,
  changes: Some<SequencedChange>,
  attempt: number,
): Promise<Delivery | undefined> {
  const [{ realm }] = changes;
  if (ledger.size() > UNSETTLED_MAX) await ledger.settled();
  if (!mayGoOn(realm)) return undefined;
  const receiver = webhook();
  const message = await writeMessage(changes, receiver, rooms.writeEvents);
  const delivery = await rooms.send(receiver, message, { realm, attempt, signal });
  // We ended it, not the receiver: it is no failure.
  if (delivery.outcome === 'unreachable' && signal.aborted) return undefined;
  ledger.noteDelivery(delivery);
  rooms.onDelivery(delivery);
  if (delivery.status === GONE) await rooms.disable(receiver);
  return delivery;
}
