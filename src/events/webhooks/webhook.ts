import type { Revision, Uuid } from '../../domain/id.ts';
import type { Realms } from '../../domain/principal.ts';

/** The writable options of a target. */
export interface WebhookOptions {
  readonly name: string;
  readonly url: string;
  /** The names of the events that it receives; `*` for all. */
  readonly events: '*' | readonly string[];
  readonly realms: Realms;
  /** Events contain the state of their record. */
  readonly withData: boolean;
  /** The maximum number of events in one message. With 1, a message is a single event, otherwise a list. */
  readonly eventsMax: number;
  /** Changes by this client are not sent. */
  readonly skippedClient: string | undefined;
}

/** A webhook target. Timestamps are milliseconds since the epoch. */
export interface Webhook extends WebhookOptions {
  readonly webhookId: string;
  readonly disabledAt: number | undefined;
  /** The signing secret, sealed by the keyring. */
  readonly secretSealed: Uint8Array;
  /** The previous secret, which also signs until it expires. */
  readonly previous: { readonly sealed: Uint8Array; readonly expiresAt: number } | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly revision: Revision;
  /** Its rows were not written by the service: nothing is sent to it, and it can only be deleted. */
  readonly isForged?: boolean;
}

/**
 * The result of an attempt: a 2xx response, any other response, or none in time. The cause of a network failure is not
 * stored, so that it reveals nothing about the network. `expired`: retention has removed the changes.
 */
export const DELIVERY_OUTCOMES = ['delivered', 'refused', 'unreachable', 'expired'] as const;
type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number];

/** One attempt to deliver a message. */
export interface Delivery {
  /** Time-ordered: the newest is the greatest. */
  readonly deliveryId: string;
  readonly webhookId: string;
  /** The `webhook-id` header: the same for every attempt with the same changes. */
  readonly messageId: string;
  readonly realm: Uuid;
  /** The sequence numbers of the first and the last change. */
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** From 1. */
  readonly attempt: number;
  readonly outcome: DeliveryOutcome;
  /** The status of the response; undefined if there was none. */
  readonly status: number | undefined;
  readonly durationMs: number;
  readonly at: number;
}

/** Changes whose delivery was given up. Later changes of the realm are delivered without them. */
export interface DeadLetter {
  readonly webhookId: string;
  readonly realm: Uuid;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** The number of attempts; 0 while it waits for redelivery. */
  readonly attempts: number;
  readonly at: number;
}

/** The key of a target's dead letter; dead letters are ordered by it. */
export type DeadLetterKey = Pick<DeadLetter, 'realm' | 'firstSeq'>;

/** The delivery progress of a target in a realm. */
export interface RealmProgress {
  readonly realm: Uuid;
  /** The sequence number of the last change that was delivered or skipped. */
  readonly seq: number;
  /** Failed attempts at the next message, and the time of the next attempt; both 0 if none failed. */
  readonly attempts: number;
  readonly nextAt: number;
  /** The sequence number of the last change in that message, which is sent again unchanged; 0 if none failed. */
  readonly failedSeq: number;
  /** The time of the first change in that message; 0 if none failed. */
  readonly behindSince: number;
}

/** The result of a message, which is stored in one commit. */
export interface DeliveryResult {
  readonly webhookId: string;
  readonly progress?: RealmProgress | undefined;
  readonly delivery?: Delivery | undefined;
  readonly deadLetter?: DeadLetter | undefined;
  /** A dead letter that was received after all: it is removed. */
  readonly received?: DeadLetterKey;
}
