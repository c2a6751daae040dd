import type { MaybePromise } from '../../directory/store.ts';
import type { AuditEntry } from '../../domain/audit_entry.ts';
import type { Revision, Uuid } from '../../domain/id.ts';
import type { Realms } from '../../domain/principal.ts';

/** A receiver of events. Instants are milliseconds since the epoch. */
export interface Webhook {
  readonly webhookId: string;
  readonly name: string;
  readonly url: string;
  /** Which events it is told, by their names; `*` for all of them. */
  readonly events: '*' | readonly string[];
  readonly realms: Realms;
  /** Events carry the state of their record. */
  readonly withData: boolean;
  /** How many events come in one message at most. With one they come by themselves, else as a list. */
  readonly eventsMax: number;
  /** Changes of this client are not told. */
  readonly skippedClient: string | undefined;
  readonly disabledAt: number | undefined;
  /** The secret that signs, sealed by the keyring. */
  readonly secretSealed: Uint8Array;
  /** The one before it, which signs as well until it expires. */
  readonly previous: { readonly sealed: Uint8Array; readonly expiresAt: number } | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly revision: Revision;
}

/**
 * What became of an attempt: a 2xx answer, any other one, or none in time. What exactly was wrong with the way is not
 * told, so that nobody learns about our network by it. `expired`: the changes are not kept any more.
 */
export const DELIVERY_OUTCOMES = ['delivered', 'refused', 'unreachable', 'expired'] as const;
export type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number];

/** One attempt to tell a receiver something. */
export interface Delivery {
  /** Time-ordered: the newest is the greatest. */
  readonly deliveryId: string;
  readonly webhookId: string;
  /** The `webhook-id` header: the same at every attempt to tell the same changes. */
  readonly messageId: string;
  readonly realm: Uuid;
  /** The places of the first and the last change in the order of the realm. */
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** From 1. */
  readonly attempt: number;
  readonly outcome: DeliveryOutcome;
  /** The status of the answer, where there was one. */
  readonly status: number | undefined;
  readonly durationMs: number;
  readonly at: number;
}

/** What was given up. The feed of its realm has gone on without it. */
export interface DeadLetter {
  readonly webhookId: string;
  readonly realm: Uuid;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** How often it was tried; 0 while it waits to be sent again. */
  readonly attempts: number;
  readonly at: number;
  /** When it was received after all. */
  readonly redeliveredAt: number | undefined;
}

/** Which dead letter: those of a receiver have an order by realm and first place. */
export type DeadLetterKey = Pick<DeadLetter, 'realm' | 'firstSeq'>;

/** How far a receiver is in a realm. */
export interface RealmProgress {
  readonly realm: Uuid;
  /** The place of the last change that it was told, or that it is not to be told. */
  readonly seq: number;
  /** How often the next message was tried in vain, and when it is tried again; 0 and 0 where it was not. */
  readonly attempts: number;
  readonly nextAt: number;
  /** The place of the last change in that message, which is sent again as it was; 0 where none was tried. */
  readonly failedSeq: number;
  /** When the first change in that message was made; 0 where none was tried. */
  readonly behindSince: number;
}

/** A realm, and how far a target is in it. Whoever delivers the realm moves it on. */
export interface RealmCursor {
  readonly realm: Uuid;
  /** The sequence of its newest change. */
  readonly head: number;
  seq: RealmProgress['seq'];
  attempts: RealmProgress['attempts'];
  nextAt: RealmProgress['nextAt'];
  failedSeq: RealmProgress['failedSeq'];
}

/** A position in the order in which the clocks of realms moved; realms may share a number. */
export interface ClockPosition {
  readonly moved: number;
  readonly realm: Uuid;
}

export type MovedRealm = RealmCursor & ClockPosition;

/** Where realms with undelivered changes are found. Answers contain realms that have none, too. */
export interface ProgressStore {
  /**
   * `begins`: no clock that is invisible now gets a number below it. `ends`: greater than the number of each clock that is
   * visible now.
   */
  clockBounds(): MaybePromise<{ readonly begins: number; readonly ends: number }>;
  /** Realms whose clock moved, behind a position in that order and below a number. */
  movedRealms(
    webhookId: string,
    after: ClockPosition,
    end: number,
    limit: number,
  ): MaybePromise<readonly MovedRealm[]>;
  /** Realms behind one in the order of their identifiers. */
  realmsBehind(webhookId: string, after: Uuid, limit: number): MaybePromise<readonly RealmCursor[]>;
  /** Realms with a failed message whose next attempt is due, the earliest first. */
  dueRealms(webhookId: string, now: number, limit: number): MaybePromise<readonly RealmCursor[]>;
  lag(webhookId: string): MaybePromise<DeliveryLag>;
}

/** What a dispatcher has come to since it last said so. All of it lands together, or nothing does. */
export interface DeliveryResults {
  readonly webhookId: string;
  readonly progress: readonly RealmProgress[];
  readonly deliveries: readonly Delivery[];
  readonly deadLetters: readonly DeadLetter[];
}

/** What a receiver was not told although it was tried. Counted as far as LIMITS.webhookLagCountedMax. */
export interface DeliveryLag {
  /** When the oldest change was made that it did not receive and is to be sent again; undefined where there is none. */
  readonly since: number | undefined;
  readonly realms: number;
  /** Dead letters that it has not received after all. */
  readonly deadLetters: number;
}

/** Where receivers rest, and what was sent to them. Each act is logged in the commit of what it tells. */
export interface WebhookStore extends ProgressStore {
  /** All of them, the oldest first. */
  list(): MaybePromise<readonly Webhook[]>;
  /**
   * Adds a receiver. It is told what comes from now on, or with `oldest` everything that is kept. Answers false where there
   * are LIMITS.webhooksMax already.
   */
  insert(webhook: Webhook, from: 'present' | 'oldest', auditEntry: AuditEntry): Promise<boolean>;
  /**
   * Replaces all but the secrets; answers false unless the stored one still carries `seen`. In realms that it did not have
   * before it is told what comes from now on.
   */
  update(webhook: Webhook, seen: Revision, auditEntry: AuditEntry): Promise<boolean>;
  /** Replaces the secrets as well; answers false unless both are still what was seen. */
  rotate(
    webhook: Webhook,
    seen: Pick<Webhook, 'revision' | 'secretSealed'>,
    auditEntry: AuditEntry,
  ): Promise<boolean>;
  /** Removes a receiver with all that is kept about it; answers false unless it still carries `seen`. */
  remove(webhookId: string, seen: Revision, auditEntry: AuditEntry): Promise<boolean>;

  /** The newest deliveries, before `before` where that is given. */
  deliveries(webhookId: string, before: string | undefined, limit: number): MaybePromise<readonly Delivery[]>;
  /** Dead letters behind a place in their order. */
  deadLetters(
    webhookId: string,
    after: DeadLetterKey | undefined,
    limit: number,
  ): MaybePromise<readonly DeadLetter[]>;
  /** Has one dead letter sent again, or with undefined all that were not received yet. Answers how many. */
  requestRedelivery(
    webhookId: string,
    which: DeadLetterKey | undefined,
    auditEntry: AuditEntry,
  ): Promise<number>;

  /** Dead letters that wait to be sent again, the oldest first. */
  pendingDeadLetters(webhookId: string, limit: number): MaybePromise<readonly DeadLetter[]>;
  /** Keeps what became of messages. Answers false, and keeps nothing, where this lease has another holder by now. */
  saveResults(
    lease: { readonly name: string; readonly holder: string },
    settled: DeliveryResults,
  ): Promise<boolean>;
  /** Removes deliveries and dead letters from before an instant, so many of each at most. Answers how many. */
  trim(before: number): Promise<number>;
}
