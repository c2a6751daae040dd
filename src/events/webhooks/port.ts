import type { MaybePromise } from '../../directory/store.ts';
import type { AuditEntry } from '../../domain/audit_entry.ts';
import type { Revision, Uuid } from '../../domain/id.ts';
import type { Realms } from '../../domain/principal.ts';

/** A webhook target. Timestamps are milliseconds since the epoch. */
export interface Webhook {
  readonly webhookId: string;
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
export type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number];

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
  /** The time of a successful redelivery. */
  readonly redeliveredAt: number | undefined;
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

/** The progress of a target in a realm, advanced during delivery. */
export interface RealmCursor {
  readonly realm: Uuid;
  /** The sequence number of its newest change. */
  readonly head: number;
  seq: RealmProgress['seq'];
  attempts: RealmProgress['attempts'];
  nextAt: RealmProgress['nextAt'];
  failedSeq: RealmProgress['failedSeq'];
}

/** A position in the order in which the clocks of realms advanced; several realms may share a number. */
export interface ClockPosition {
  readonly moved: number;
  readonly realm: Uuid;
}

export type MovedRealm = RealmCursor & ClockPosition;

/** Finds realms with undelivered changes. Results may include realms without any. */
export interface ProgressStore {
  /**
   * `begins`: no clock that becomes visible later gets a number below it. `ends`: greater than the numbers of all visible
   * clocks.
   */
  clockBounds(): MaybePromise<{ readonly begins: number; readonly ends: number }>;
  /** Realms whose clock advanced, after a position in that order and below a number. */
  movedRealms(
    webhookId: string,
    after: ClockPosition,
    end: number,
    limit: number,
  ): MaybePromise<readonly MovedRealm[]>;
  /** Realms after a realm in the order of their IDs. */
  realmsAfter(webhookId: string, after: Uuid, limit: number): MaybePromise<readonly RealmCursor[]>;
  /** Realms with a failed message whose next attempt is due, the earliest first. */
  dueRealms(webhookId: string, now: number, limit: number): MaybePromise<readonly RealmCursor[]>;
  lag(webhookId: string): MaybePromise<DeliveryLag>;
}

/** Unsaved results of a target's deliveries, which are stored in one commit. */
export interface DeliveryResults {
  readonly webhookId: string;
  readonly progress: readonly RealmProgress[];
  readonly deliveries: readonly Delivery[];
  readonly deadLetters: readonly DeadLetter[];
}

/** Undelivered changes of a target, counted up to LIMITS.webhookLagCountedMax. */
export interface DeliveryLag {
  /** The time of the oldest change that is still to be delivered; undefined if there is none. */
  readonly since: number | undefined;
  readonly realms: number;
  /** Dead letters that were not redelivered. */
  readonly deadLetters: number;
}

/** Stores webhook targets and their deliveries. Every change of a target is committed with its audit entry. */
export interface WebhookStore extends ProgressStore {
  /** All targets, oldest first. */
  list(): MaybePromise<readonly Webhook[]>;
  find(webhookId: string): MaybePromise<Webhook | undefined>;
  /**
   * Adds a target. It receives changes from now on, or with `oldest` all stored changes. Returns false if there are
   * LIMITS.webhooksMax already.
   */
  insert(webhook: Webhook, from: 'present' | 'oldest', auditEntry: AuditEntry): Promise<boolean>;
  /**
   * Replaces all but the secrets of a target; returns false unless its stored revision is that of `found`. In newly added realms
   * it receives changes from now on.
   */
  update(
    webhook: Webhook,
    found: Pick<Webhook, 'revision' | 'realms'>,
    auditEntry: AuditEntry,
  ): Promise<boolean>;
  /** Replaces the secrets as well; returns false unless revision and secret are as expected. */
  rotate(
    webhook: Webhook,
    expected: Pick<Webhook, 'revision' | 'secretSealed'>,
    auditEntry: AuditEntry,
  ): Promise<boolean>;
  /** Deletes a target with its deliveries and progress; returns false unless its revision is `expected`. */
  remove(webhookId: string, expected: Revision, auditEntry: AuditEntry): Promise<boolean>;

  /** The newest deliveries, or those before a delivery ID. */
  deliveries(webhookId: string, before: string | undefined, limit: number): MaybePromise<readonly Delivery[]>;
  /** Dead letters after a key. */
  deadLetters(
    webhookId: string,
    after: DeadLetterKey | undefined,
    limit: number,
  ): MaybePromise<readonly DeadLetter[]>;
  /** Queues one dead letter for redelivery, or with undefined all that were not redelivered. Returns how many. */
  requestRedelivery(
    webhookId: string,
    which: DeadLetterKey | undefined,
    auditEntry: AuditEntry,
  ): Promise<number>;

  /** Dead letters that wait for redelivery, oldest first. */
  pendingDeadLetters(webhookId: string, limit: number): MaybePromise<readonly DeadLetter[]>;
  /** Stores results of deliveries. Returns false, and stores nothing, if the lease has another holder. */
  saveResults(
    lease: { readonly name: string; readonly holder: string },
    results: DeliveryResults,
  ): Promise<boolean>;
  /** Deletes a bounded number of deliveries and dead letters from before a time. Returns how many. */
  trim(before: number): Promise<number>;
}
