import type { Keyring } from '../../auth/keys/keyring.ts';
import {
  type AuditAction,
  type AuditContext,
  type AuditEntry,
  createAuditEntry,
} from '../../domain/audit_entry.ts';
import { Fault } from '../../domain/fault.ts';
import type { Revision, Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { changeManaged, deleteManaged, type Edit } from '../../domain/managed.ts';
import type { Realms } from '../../domain/principal.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { text } from '../../domain/text/text.ts';
import type { DeadLetterKey, Webhook, WebhookStore } from './port.ts';
import { mintWebhookSecret, openWebhookSecret, sealWebhookSecret } from './secret.ts';

/** What people call a receiver. */
export const WEBHOOK_NAME = text(255);
/** A client of ours, or one whose tokens another issuer signs. */
export const SKIPPED_CLIENT = text(255);

/** Every event that may be named. That a user was erased is told to every target. */
export const EVENT_NAMES: readonly string[] = RESOURCES.flatMap(({ name }) =>
  ['created', 'updated', 'deleted'].map((verb) => `${name}.${verb}`),
);

/** What may be said about a receiver. */
export interface WebhookOptions {
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

export interface WebhookDeps {
  readonly store: WebhookStore;
  readonly keyring: Pick<Keyring, 'seal' | 'open'>;
  /** Whether events may be sent to this URL, as far as that can be said without asking its host. */
  readonly isAllowed: (url: string) => boolean;
}

/** Where events may be sent. */
export const WEBHOOK_URL_RULE = `must be an https URL on port 443 without userinfo, of at most ${LIMITS.webhookUrlCharactersMax} characters`;

/** Makes a receiver. Rejects with Fault `conflict` where there are LIMITS.webhooksMax already. */
export async function createWebhook(
  { store, keyring }: Pick<WebhookDeps, 'store' | 'keyring'>,
  wish: WebhookOptions,
  from: 'present' | 'oldest',
  auditContext: AuditContext,
): Promise<IssuedWebhook> {
  const secret = mintWebhookSecret(auditContext);
  const webhookId = auditContext.mintId();
  const now = auditContext.now();
  const webhook: Webhook = {
    webhookId,
    ...wish,
    disabledAt: undefined,
    secretSealed: sealWebhookSecret(keyring, 'secret_sealed', webhookId, secret),
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
  if (!(await store.insert(webhook, from, auditEntry))) {
    throw new Fault('conflict', [
      { field: 'body', rule: `there may be ${LIMITS.webhooksMax} webhook targets` },
    ]);
  }
  return { webhook, secret };
}

/** State in the audit log: never a secret, and of the URL the host alone. */
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

export async function findWebhook(
  store: Pick<WebhookStore, 'list'>,
  webhookId: string,
): Promise<Webhook | undefined> {
  return (await store.list()).find((webhook) => webhook.webhookId === webhookId);
}

export type WebhookPatch = Partial<WebhookOptions & Pick<Webhook, 'disabledAt'>>;

/** Answers undefined where there is no such receiver. */
export function changeWebhook(
  { store }: Pick<WebhookDeps, 'store'>,
  webhookId: string,
  edit: Edit<Webhook, WebhookPatch>,
  auditContext: AuditContext,
): Promise<Webhook | undefined> {
  return changeManaged<Webhook>(
    {
      find: () => findWebhook(store, webhookId),
      edit,
      save(webhook, found) {
        const auditEntry = changeEvent('webhook.changed', found, webhook, auditContext);
        return store.update(webhook, found.revision, auditEntry);
      },
    },
    auditContext,
  );
}

/** A new secret; the old one signs as well during the overlap, so that the receiver can be moved in its own time. */
export async function rotateWebhook(
  { store, keyring }: Pick<WebhookDeps, 'store' | 'keyring'>,
  webhookId: string,
  overlapMs: number,
  auditContext: AuditContext,
): Promise<IssuedWebhook | undefined> {
  const secret = mintWebhookSecret(auditContext);
  const secrets = ({ secretSealed }: Webhook) => {
    const old = openWebhookSecret(keyring, 'secret_sealed', webhookId, secretSealed);
    const sealed = sealWebhookSecret(keyring, 'previous_sealed', webhookId, old);
    return {
      secretSealed: sealWebhookSecret(keyring, 'secret_sealed', webhookId, secret),
      previous: overlapMs > 0 ? { sealed, expiresAt: auditContext.now() + overlapMs } : undefined,
    };
  };
  const webhook = await changeManaged<Webhook>(
    {
      find: () => findWebhook(store, webhookId),
      edit: secrets,
      save: (rotated, found) =>
        store.rotate(rotated, found, changeEvent('webhook.rotated', found, rotated, auditContext)),
    },
    auditContext,
  );
  return webhook && { webhook, secret };
}

/**
 * Removes a receiver with its deliveries and dead letters; false where there is none. Rejects with Fault
 * `precondition_failed` where `seen` is not its revision.
 */
export function deleteWebhook(
  store: WebhookStore,
  webhookId: string,
  auditContext: AuditContext,
  seen?: Revision | undefined,
): Promise<boolean> {
  return deleteManaged<Webhook>({
    find: () => findWebhook(store, webhookId),
    expected: seen,
    remove(found) {
      const detail = { before: auditState(found) };
      const auditEntry = createAuditEntry('webhook.deleted', { object: webhookId, detail }, auditContext);
      return store.remove(webhookId, found.revision, auditEntry);
    },
  });
}

/** Has dead letters sent again by whoever dispatches to this receiver, within seconds. Answers how many. */
export function requestRedelivery(
  store: WebhookStore,
  webhookId: string,
  which: DeadLetterKey | undefined,
  auditContext: AuditContext,
): Promise<number> {
  const told: { readonly realm?: Uuid } = which ? { realm: which.realm } : {};
  const detail = which ? { first_seq: which.firstSeq } : {};
  return store.requestRedelivery(
    webhookId,
    which,
    createAuditEntry('webhook.redelivered', { object: webhookId, ...told, detail }, auditContext),
  );
}

function changeEvent(
  action: AuditAction,
  before: Webhook,
  after: Webhook,
  auditContext: AuditContext,
): AuditEntry {
  const detail = { before: auditState(before), after: auditState(after) };
  return createAuditEntry(action, { object: after.webhookId, detail }, auditContext);
}
