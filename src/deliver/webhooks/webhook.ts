import type { StoredRow } from '../../sql/tables/table.ts';
import type {
  deadLetterTable,
  deliveryTable,
  progressTable,
  webhookTable,
} from '../../sql/tables/webhooks.ts';

/** A webhook target. Timestamps are milliseconds since the epoch; secrets are sealed by the keyring. */
export interface Webhook
  extends Omit<StoredRow<typeof webhookTable>, 'previousSealed' | 'previousExpiresAt'> {
  /** The previous secret, which also signs until it expires. */
  readonly previous: { readonly sealed: Uint8Array; readonly expiresAt: number } | undefined;
  /** Its rows were not written by the service: nothing is sent to it, and it can only be deleted. */
  readonly isForged?: boolean;
}

/**
 * The writable options of a target: `*` are all events, or all realms; `withData` adds the state of the record to an event; a
 * message has up to `eventsMax` events, and with 1 is a single event, otherwise a list; changes by `skippedClient` are not sent.
 */
export type WebhookOptions = Pick<
  Webhook,
  'name' | 'url' | 'events' | 'realms' | 'withData' | 'eventsMax' | 'skippedClient'
>;

/**
 * The result of an attempt: a 2xx response, any other response, or none in time. The cause of a network failure is not
 * stored, so that it reveals nothing about the network. `expired`: retention has removed the changes.
 */
export const DELIVERY_OUTCOMES = ['delivered', 'refused', 'unreachable', 'expired'] as const;

/**
 * One attempt to deliver a message, numbered from 1. Its ID is time-ordered: the newest is the greatest. `messageId` is the
 * `webhook-id` header, the same for every attempt with the same changes. There is no status without a response.
 */
export interface Delivery extends StoredRow<typeof deliveryTable> {
  readonly outcome: (typeof DELIVERY_OUTCOMES)[number];
}

/** Changes whose delivery was given up. Later changes of the realm are delivered without them. */
export type DeadLetter = StoredRow<typeof deadLetterTable>;

/** The key of a target's dead letter; dead letters are ordered by it. */
export type DeadLetterKey = Pick<DeadLetter, 'realm' | 'firstSeq'>;

/** The delivery progress of a target in a realm. */
export type RealmProgress = Omit<StoredRow<typeof progressTable>, 'webhookId'>;

/** The result of a message, which is stored in one commit. */
export interface DeliveryResult {
  readonly webhookId: string;
  readonly progress?: RealmProgress | undefined;
  readonly delivery?: Delivery | undefined;
  readonly deadLetter?: DeadLetter | undefined;
  /** A dead letter that was received after all: it is removed. */
  readonly received?: DeadLetterKey;
}
