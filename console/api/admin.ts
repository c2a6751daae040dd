import { callApi, ifMatch } from './call_api.ts';
import { pagesOf, type ReadPage, readPages } from './list_page.ts';
import { itemPages, type WithEtag } from './records.ts';

/** Shared by all admin resources. */

export const ADMIN = 'admin';

/** A client or a webhook target: it has a secret and can be disabled. */
export interface Managed {
  readonly id: string;
  readonly name: string;
  readonly is_disabled: boolean;
  readonly previous_secret_expires_at: string | null;
  readonly meta: { readonly created_at: string; readonly updated_at: string };
}

/** With its secret, which only the response that creates it contains. */
export interface WithSecret extends Managed {
  readonly secret: string;
}

/** The path of a collection, or of what is below it. */
function adminPath(...segments: readonly string[]): string {
  return ['admin/v1', ...segments.map(encodeURIComponent)].join('/');
}

function adminPages<T>(...segments: readonly string[]): ReadPage<T> {
  return itemPages(adminPath(...segments), ADMIN);
}

/** The operations on one kind of managed resource. `Input` holds its writable members. */
export type Collection<Input, Created> = ReturnType<typeof managedCollection<Input, Created>>;

/** `secret` is the member of an answer that holds it. */
function managedCollection<Input, Created = Input>(collection: string, secret: string) {
  const pathOf = (id: string, ...action: readonly string[]) => adminPath(collection, id, ...action);
  // The service ignores `Idempotency-Key` here: a repetition could not return the secret.
  const issue = async (path: string, data: unknown): Promise<WithSecret> => {
    const { body } = await callApi<{ data: Managed & Readonly<Record<string, unknown>> }>({
      ...{ method: 'POST', path, body: { data }, scope: ADMIN },
    });
    return { ...body.data, secret: String(body.data[secret]) };
  };
  return {
    async read(id: string, signal?: AbortSignal): Promise<WithEtag<Managed & Input>> {
      const { body, etag } = await callApi<{ data: Managed & Input }>({
        path: pathOf(id),
        scope: ADMIN,
        signal,
      });
      return { record: body.data, etag };
    },
    create: (input: Created) => issue(adminPath(collection), input),
    /** Updates the version that the ETag names. Throws Problem `stale` if it has changed since. */
    async update(id: string, data: Partial<Input>, etag: string | undefined): Promise<void> {
      const headers = ifMatch(etag);
      await callApi({ method: 'PUT', path: pathOf(id), headers, body: { data }, scope: ADMIN });
    },
    async remove(id: string, etag: string | undefined): Promise<void> {
      await callApi({ method: 'DELETE', path: pathOf(id), headers: ifMatch(etag), scope: ADMIN });
    },
    async setEnabled(id: string, action: 'disable' | 'enable'): Promise<void> {
      await callApi({ method: 'POST', path: pathOf(id, action), scope: ADMIN });
    },
    /** Creates a new secret; the current one stays valid for `overlapSeconds`. */
    rotate: (id: string, overlapSeconds: number) =>
      issue(pathOf(id, 'rotate'), { overlap_seconds: overlapSeconds }),
  };
}

/** Clients and signing keys, over the paths of administration. */

/** The writable members of a client. */
export interface ClientInput {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly realms: '*' | readonly string[];
  /** What the ID alone gives. */
  readonly implicit_scopes: readonly string[];
  /** Where it does; `*` for the realms of the client. */
  readonly implicit_realms: '*' | readonly string[];
  /** `N/SECONDS`, for each address. */
  readonly rate_per_address: string | null;
  /** Networks without that rate. */
  readonly storefronts: readonly string[];
  /** Of a client with the scope `sign-in`. */
  readonly end_user_address: 'header' | 'none' | null;
}

type Client = Managed & ClientInput;

export interface ListedClient extends Client {
  readonly last_used_at: string | null;
}

export interface SigningKey {
  readonly id: string;
  readonly state: 'signs' | 'next' | 'accepted' | 'retired' | 'withdrawn';
  readonly signs_from: string;
  readonly withdrawn_at: string | null;
  readonly meta: { readonly created_at: string };
}

const CLIENTS = 'clients';

export const clients = managedCollection<ClientInput>(CLIENTS, 'client_secret');

export function clientPages(): ReadPage<ListedClient> {
  return adminPages(CLIENTS);
}

/** Reads the whole of a short list. */
function wholeList<T>(collection: string): (signal: AbortSignal) => Promise<readonly T[]> {
  return async (signal) => (await readPages(pagesOf(adminPages<T>(collection), signal))).items;
}

export const readSigningKeys = wholeList<SigningKey>('signing-keys');

/** A client, and when it was last used. */
export async function readClientWithLastUse(
  id: string,
  signal: AbortSignal,
): Promise<WithEtag<Client> & LastUse> {
  const [one, use] = await Promise.all([
    clients.read(id, signal),
    callApi<{ data: LastUse }>({ path: adminPath(CLIENTS, id, 'use'), signal, scope: ADMIN }),
  ]);
  return { ...one, last_used_at: use.body.data.last_used_at };
}

type LastUse = Pick<ListedClient, 'last_used_at'>;

export async function createSigningKey(): Promise<void> {
  await callApi({ method: 'POST', path: 'admin/v1/signing-keys', scope: ADMIN });
}

export async function withdrawSigningKey(id: string): Promise<void> {
  await callApi({ method: 'POST', path: adminPath('signing-keys', id, 'withdraw'), scope: ADMIN });
}

/** Webhook targets, their deliveries and dead letters. */

/** The writable members of a webhook target. */
export interface WebhookInput {
  readonly name: string;
  readonly url: string;
  readonly events: '*' | readonly string[];
  readonly realms: '*' | readonly string[];
  readonly with_data: boolean;
  readonly events_max: number;
  readonly skipped_client: string | null;
}

export type Webhook = Managed & WebhookInput;

/** Where a new target starts: at the present, or at the oldest change in the feed. */
export interface NewWebhookInput extends WebhookInput {
  readonly from: 'present' | 'oldest';
}

/** The changes of a realm that one message carries. */
interface ChangeRange {
  readonly id: string;
  readonly realm_id: string;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly at: string;
}

/** One attempt. */
export interface Delivery extends ChangeRange {
  readonly message_id: string | null;
  readonly attempt: number;
  readonly outcome: string;
  readonly status: number | null;
  readonly duration_ms: number;
}

/** A message that is no longer retried. */
export interface DeadLetter extends ChangeRange {
  readonly state: 'dead' | 'waiting';
  readonly attempts: number;
}

const WEBHOOKS = 'webhooks';

export const webhooks = managedCollection<WebhookInput, NewWebhookInput>(WEBHOOKS, 'secret');

export function webhookPages(): ReadPage<Webhook> {
  return adminPages(WEBHOOKS);
}

/** Newest first. */
export function deliveryPages(id: string): ReadPage<Delivery> {
  return adminPages(WEBHOOKS, id, 'deliveries');
}

export function deadLetterPages(id: string): ReadPage<DeadLetter> {
  return adminPages(WEBHOOKS, id, 'dead-letters');
}

/** Sends a dead letter again, or with `*` all and the failed messages; returns how many. */
export async function redeliver(id: string, letter: string): Promise<number> {
  const { body } = await callApi<{ data: { dead_letters: number; retries: number } }>({
    method: 'POST',
    path: adminPath(WEBHOOKS, id, 'redeliver'),
    body: { data: { message: letter } },
    scope: ADMIN,
  });
  return body.data.dead_letters + body.data.retries;
}

/** Who may use the console. */

/** The rights of a person. */
export type Grant = Pick<ClientInput, 'name' | 'scopes' | 'realms'>;

type Invitation = Grant & Pick<SigningKey, 'id' | 'meta'> & { readonly expires_at: string };

/** It was last used at `renewed_at`, to within minutes. */
type ConsoleSession = Grant & Readonly<Record<'id' | 'begun_at' | 'renewed_at', string>>;

const INVITATIONS = 'console-links';

export const invitations = managedCollection<Grant>(INVITATIONS, 'url');
export const readInvitations = wholeList<Invitation>(INVITATIONS);
export const readConsoleSessions = wholeList<ConsoleSession>('console-sessions');

/** Ends a session, or with `*` all. */
export async function endConsoleSessions(session: string): Promise<void> {
  const path = 'admin/v1/console-sessions/end';
  await callApi({ method: 'POST', path, body: { data: { session } }, scope: ADMIN });
}
