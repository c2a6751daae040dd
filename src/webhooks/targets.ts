import type { Keyring } from '../access/keyring.ts';
import { type Act, type ActName, actOf, type Occasion } from '../domain/act.ts';
import { type Complaint, Fault } from '../domain/fault.ts';
import type { Revision, Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Realms } from '../domain/principal.ts';
import { RESOURCES } from '../domain/resources.ts';
import { text } from '../domain/text.ts';
import type { LetterPlace, Webhook, WebhookStore } from './port.ts';
import { mintSecret, openSecret, sealSecret } from './secret.ts';

/** What people call a receiver. */
export const WEBHOOK_NAME = text(255);
/** A client of ours, or one whose tokens another issuer signs. */
export const SKIPPED_CLIENT = text(255);

/** Every event that may be named. That a user was erased is told to every target. */
export const EVENT_NAMES: readonly string[] = RESOURCES.flatMap(({ name }) =>
  ['created', 'updated', 'deleted'].map((verb) => `${name}.${verb}`),
);

/** What may be said about a receiver. */
export interface WebhookWish {
  readonly name: string;
  readonly url: string;
  readonly events: '*' | readonly string[];
  readonly realms: Realms;
  readonly withData: boolean;
  readonly eventsMax: number;
  readonly skippedClient: string | undefined;
}

/** A receiver as it was just given a secret: the only moment the secret is told. */
export interface IssuedWebhook {
  readonly webhook: Webhook;
  readonly secret: string;
}

export interface WebhookRooms {
  readonly store: WebhookStore;
  readonly keyring: Pick<Keyring, 'seal' | 'open'>;
  /** Whether events may be sent to this URL, as far as that can be said without asking its host. */
  readonly isAllowed: (url: string) => boolean;
}

/** What is wrong with a wish, by the names that its members have over HTTP. */
export function complaintsAbout(
  { name, url, events, realms, eventsMax, skippedClient }: WebhookWish,
  isAllowed: WebhookRooms['isAllowed'],
): readonly Complaint[] {
  const rules: readonly (readonly [string, string | undefined])[] = [
    ['name', WEBHOOK_NAME.safeParse(name).error?.issues[0]?.message],
    ['url', url.length <= LIMITS.webhookUrlCharactersMax && isAllowed(url) ? undefined : WEBHOOK_URL_RULE],
    ['events', ruleOfEvents(events)],
    ['realms', realms === '*' || realms.size > 0 ? undefined : 'must name a realm at least'],
    ['events_max', isEventsMax(eventsMax) ? undefined : EVENTS_MAX_RULE],
    [
      'skipped_client',
      skippedClient === undefined
        ? undefined
        : SKIPPED_CLIENT.safeParse(skippedClient).error?.issues[0]?.message,
    ],
  ];
  return rules.flatMap(([field, rule]) => (rule === undefined ? [] : [{ field, rule }]));
}

/** Where events may be sent. */
export const WEBHOOK_URL_RULE = `must be an https URL on port 443 without userinfo, of at most ${LIMITS.webhookUrlCharactersMax} characters`;
const EVENTS_MAX_RULE = `must be a whole number from 1 to ${LIMITS.webhookEventsMax}`;

function isEventsMax(count: number): boolean {
  return Number.isInteger(count) && count >= 1 && count <= LIMITS.webhookEventsMax;
}

function ruleOfEvents(events: WebhookWish['events']): string | undefined {
  if (events === '*') return undefined;
  if (events.length === 0) return 'must name an event at least';
  return events.every((event) => EVENT_NAMES.includes(event))
    ? undefined
    : `must be names of events: ${EVENT_NAMES.join(', ')}`;
}

/** Makes a receiver. Rejects with Fault `invalid`, or `conflict` where there are LIMITS.webhooksMax already. */
export async function createWebhook(
  { store, keyring, isAllowed }: WebhookRooms,
  wish: WebhookWish,
  from: 'present' | 'oldest',
  occasion: Occasion,
): Promise<IssuedWebhook> {
  assertRight(wish, isAllowed);
  const secret = mintSecret(occasion);
  const webhookId = occasion.mintId();
  const now = occasion.now();
  const webhook: Webhook = {
    webhookId,
    ...wish,
    disabledAt: undefined,
    secretSealed: sealSecret(keyring, 'secret_sealed', webhookId, secret),
    previous: undefined,
    createdAt: now,
    updatedAt: now,
    revision: occasion.mintRevision(),
  };
  const act = actOf(
    'webhook.created',
    { object: webhookId, detail: { after: toldOf(webhook), from } },
    occasion,
  );
  if (!(await store.insert(webhook, from, act))) {
    throw new Fault('conflict', [
      { field: 'body', rule: `there may be ${LIMITS.webhooksMax} webhook targets` },
    ]);
  }
  return { webhook, secret };
}

function assertRight(wish: WebhookWish, isAllowed: WebhookRooms['isAllowed']): void {
  const complaints = complaintsAbout(wish, isAllowed);
  if (complaints.length > 0) throw new Fault('invalid', complaints);
}

/** What the log tells of a receiver: never a secret, and of the URL where it leads and not what stands behind. */
function toldOf({ name, url, events, realms, withData, eventsMax, skippedClient, disabledAt }: Webhook) {
  return {
    name,
    host: URL.parse(url)?.host ?? '',
    events,
    realms: realms === '*' ? realms : [...realms],
    with_data: withData,
    events_max: eventsMax,
    skipped_client: skippedClient ?? null,
    is_disabled: disabledAt !== undefined,
  };
}

export async function findWebhook(
  store: Pick<WebhookStore, 'list'>,
  webhookId: string,
): Promise<Webhook | undefined> {
  return (await store.list()).find((webhook) => webhook.webhookId === webhookId);
}

export type WebhookPatch = Partial<WebhookWish & Pick<Webhook, 'disabledAt'>>;

/** What is to change, or what is to change of the one that is there; undefined leaves it as it is. */
export type WebhookEdit = WebhookPatch | ((found: Webhook) => WebhookPatch | undefined);

/** Changes what is named and nothing else. Undefined where there is no such receiver. Rejects with Fault `invalid`. */
export async function changeWebhook(
  { store, isAllowed }: Pick<WebhookRooms, 'store' | 'isAllowed'>,
  webhookId: string,
  edit: WebhookEdit,
  occasion: Occasion,
): Promise<Webhook | undefined> {
  for (;;) {
    const found = await findWebhook(store, webhookId);
    if (!found) return undefined;
    const patch = typeof edit === 'function' ? edit(found) : edit;
    if (!patch) return found;
    const changed = { ...found, ...patch, ...stamps(found, occasion) };
    // What was allowed once may be disabled without being allowed still.
    assertRight(changed, patch.url === undefined ? () => true : isAllowed);
    const act = changeAct('webhook.changed', found, changed, occasion);
    if (await store.update(changed, found.revision, act)) return changed;
  }
}

/** A new secret; the old one signs beside it for the overlap, so that the receiver can be moved in its own time. */
export async function rotateWebhook(
  { store, keyring }: Pick<WebhookRooms, 'store' | 'keyring'>,
  webhookId: string,
  overlapMs: number,
  occasion: Occasion,
): Promise<IssuedWebhook | undefined> {
  const secret = mintSecret(occasion);
  for (;;) {
    const found = await findWebhook(store, webhookId);
    if (!found) return undefined;
    const old = openSecret(keyring, 'secret_sealed', webhookId, found.secretSealed);
    const previous = {
      sealed: sealSecret(keyring, 'previous_sealed', webhookId, old),
      expiresAt: occasion.now() + overlapMs,
    };
    const webhook: Webhook = {
      ...found,
      secretSealed: sealSecret(keyring, 'secret_sealed', webhookId, secret),
      previous: overlapMs > 0 ? previous : undefined,
      ...stamps(found, occasion),
    };
    const act = changeAct('webhook.rotated', found, webhook, occasion);
    if (await store.rotate(webhook, found, act)) return { webhook, secret };
  }
}

/** Throws Fault `precondition_failed` where a receiver is not the one that was seen. */
export function proveSeen({ revision }: Webhook, seen: Revision | undefined): void {
  if (seen !== undefined && revision !== seen) throw new Fault('precondition_failed');
}

/**
 * Removes a receiver with its deliveries and dead letters; false where there is none. Rejects with Fault
 * `precondition_failed` where it is not the one that was seen.
 */
export async function deleteWebhook(
  store: WebhookStore,
  webhookId: string,
  occasion: Occasion,
  seen?: Revision | undefined,
): Promise<boolean> {
  for (;;) {
    const found = await findWebhook(store, webhookId);
    if (!found) return false;
    proveSeen(found, seen);
    const detail = { before: toldOf(found) };
    const act = actOf('webhook.deleted', { object: webhookId, detail }, occasion);
    if (await store.remove(webhookId, found.revision, act)) return true;
  }
}

/** Has dead letters sent again by whoever dispatches to this receiver, within seconds. Answers how many. */
export function redeliver(
  store: WebhookStore,
  webhookId: string,
  which: LetterPlace | undefined,
  occasion: Occasion,
): Promise<number> {
  const told: { readonly realm?: Uuid } = which ? { realm: which.realm } : {};
  const detail = which ? { first_seq: which.firstSeq } : {};
  return store.resend(
    webhookId,
    which,
    actOf('webhook.redelivered', { object: webhookId, ...told, detail }, occasion),
  );
}

function stamps(found: Webhook, { now, mintRevision }: Occasion) {
  return { updatedAt: Math.max(found.updatedAt, now()), revision: mintRevision() };
}

function changeAct(action: ActName, before: Webhook, after: Webhook, occasion: Occasion): Act {
  const detail = { before: toldOf(before), after: toldOf(after) };
  return actOf(action, { object: after.webhookId, detail }, occasion);
}
