import type { Keyring } from '../../access/keys/keyring.ts';
import { conflict } from '../../model/fault.ts';
import type { Revision } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { type AuditAction, type AuditContext, createAuditEntry } from '../../model/log/audit_entry.ts';
import { applyEdit, assertRevision, type Edit, type LoggedChange } from '../../model/managed.ts';
import { RESOURCES } from '../../model/resources.ts';
import { text } from '../../model/text/text.ts';
import type { WebhookStore } from '../store/webhooks.ts';
import { mintWebhookSecret, webhookSecretAt } from './secret.ts';
import type { DeadLetterKey, Webhook, WebhookOptions } from './webhook.ts';

export const WEBHOOK_NAME = text(255);
/** The ID of a client, or the actor of an external token. */
export const SKIPPED_CLIENT = text(255);

/** The events that a target can choose. Every target receives erasures as well. */
export const EVENT_NAMES: readonly string[] = RESOURCES.flatMap(({ name }) =>
  ['created', 'updated', 'deleted'].map((verb) => `${name}.${verb}`),
);

/** A target with its new secret, which is returned only once. */
export interface IssuedWebhook {
  readonly webhook: Webhook;
  readonly secret: string;
}

export interface WebhookDeps {
  readonly store: WebhookStore;
  readonly keyring: Pick<Keyring, 'seal' | 'open'>;
  /** The rule that this URL of a target breaks, checked without contacting its host. */
  readonly brokenUrlRule: (url: string | undefined) => string | undefined;
}

/** Creates a target. Rejects with Fault `conflict` if there are LIMITS.webhooksMax already. */
export async function createWebhook(
  { store, keyring }: Pick<WebhookDeps, 'store' | 'keyring'>,
  options: WebhookOptions,
  from: 'present' | 'oldest',
  auditContext: AuditContext,
): Promise<IssuedWebhook> {
  const secret = mintWebhookSecret(auditContext);
  const webhookId = auditContext.mintId();
  const now = auditContext.now();
  const webhook: Webhook = {
    webhookId,
    ...options,
    disabledAt: undefined,
    secretSealed: keyring.seal('webhook-secret', webhookSecretAt('secret_sealed', webhookId), secret),
    previous: undefined,
    createdAt: now,
    updatedAt: now,
    revision: auditContext.mintRevision(),
  };
  const auditEntry = createAuditEntry(
    'webhook.created',
    { object: webhookId, detail: { after: auditState(webhook), from } },
    auditContext,
  );
  if (!(await store.insert(webhook, from, auditEntry)))
    throw conflict('body', `there may be ${LIMITS.webhooksMax} webhook targets`);
  return { webhook, secret };
}

/** The state in the audit log: without secrets, and with only the host of the URL. */
function auditState({ name, url, events, realms, withData, eventsMax, skippedClient, disabledAt }: Webhook) {
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

export type WebhookPatch = Partial<WebhookOptions & Pick<Webhook, 'disabledAt'>>;

/** Returns undefined if there is no such target. */
export function changeWebhook(
  { store }: Pick<WebhookDeps, 'store'>,
  webhookId: string,
  edit: Edit<Webhook, WebhookPatch>,
  auditContext: AuditContext,
): Promise<Webhook | undefined> {
  return store.change(webhookId, (found) => loggedChange('webhook.changed', found, edit, auditContext));
}

/** Creates a new secret; the old one also signs during the overlap, so that the receiver can switch at any time. */
export async function rotateWebhook(
  { store, keyring }: Pick<WebhookDeps, 'store' | 'keyring'>,
  webhookId: string,
  overlapMs: number,
  auditContext: AuditContext,
): Promise<IssuedWebhook | undefined> {
  const secret = mintWebhookSecret(auditContext);
  const secrets = ({ secretSealed }: Webhook) => {
    const location = webhookSecretAt('secret_sealed', webhookId);
    const old = keyring.open('webhook-secret', location, secretSealed);
    const sealed = keyring.seal('webhook-secret', webhookSecretAt('previous_sealed', webhookId), old);
    return {
      secretSealed: keyring.seal('webhook-secret', location, secret),
      previous: overlapMs > 0 ? { sealed, expiresAt: auditContext.now() + overlapMs } : undefined,
    };
  };
  const webhook = await store.change(webhookId, (found) =>
    loggedChange('webhook.rotated', found, secrets, auditContext),
  );
  return webhook && { webhook, secret };
}

/**
 * Deletes a target with its deliveries and dead letters; returns false if there is none. Rejects with Fault
 * `precondition_failed` if `expected` is not its revision.
 */
export function deleteWebhook(
  store: WebhookStore,
  webhookId: string,
  auditContext: AuditContext,
  expected?: Revision | undefined,
): Promise<boolean> {
  return store.remove(webhookId, (found) => {
    assertRevision(found, expected);
    const detail = { before: auditState(found) };
    return createAuditEntry('webhook.deleted', { object: webhookId, detail }, auditContext);
  });
}

/** Sends a dead letter or a failed message again, or all of them; begins within seconds. */
export function requestRedelivery(
  store: WebhookStore,
  webhookId: string,
  which: DeadLetterKey | undefined,
  auditContext: AuditContext,
): ReturnType<WebhookStore['requestRedelivery']> {
  const detail = which ? { first_seq: which.firstSeq } : {};
  const fields = { object: webhookId, ...(which && { realm: which.realm }), detail };
  const auditEntry = createAuditEntry('webhook.redelivered', fields, auditContext);
  return store.requestRedelivery(webhookId, which, auditEntry);
}

function loggedChange(
  action: AuditAction,
  found: Webhook,
  edit: Edit<Webhook>,
  auditContext: AuditContext,
): LoggedChange<Webhook> | undefined {
  const after = applyEdit(found, edit, auditContext);
  if (!after) return undefined;
  const detail = { before: auditState(found), after: auditState(after) };
  return { after, auditEntry: createAuditEntry(action, { object: found.webhookId, detail }, auditContext) };
}
