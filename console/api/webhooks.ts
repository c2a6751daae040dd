import { ADMIN, adminPages, condition } from './administration.ts';
import { type Answer, ask } from './caller.ts';
import type { ReadPage } from './pages.ts';

/** Webhook targets, what was sent to them, and what was given up. */

/** What is said about a target. */
export interface Wish {
  readonly name: string;
  readonly url: string;
  readonly events: '*' | readonly string[];
  readonly realms: '*' | readonly string[];
  readonly with_data: boolean;
  readonly events_max: number;
  readonly skipped_client: string | null;
}

export interface Webhook extends Wish {
  readonly id: string;
  readonly is_disabled: boolean;
  readonly previous_secret_expires_at: string | null;
  readonly meta: { readonly created_at: string; readonly updated_at: string };
}

/** What signs messages: known to the answer that made it, and to nobody afterwards. */
export interface IssuedWebhook extends Webhook {
  readonly secret: string;
}

export interface TaggedWebhook {
  readonly webhook: Webhook;
  readonly etag: string | undefined;
}

/** Changes of a realm that travel together. */
interface Told {
  readonly id: string;
  readonly realm_id: string;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly at: string;
}

/** One attempt. */
export interface Delivery extends Told {
  readonly message_id: string | null;
  readonly attempt: number;
  readonly outcome: string;
  readonly status: number | null;
  readonly duration_ms: number;
}

/** What a target was not told, and is not tried any more. */
export interface DeadLetter extends Told {
  readonly state: 'dead' | 'waiting' | 'redelivered';
  readonly attempts: number;
  readonly redelivered_at: string | null;
}

const COLLECTION = 'webhooks';

function pathOf(id: string, act = ''): string {
  return `admin/v1/${COLLECTION}/${encodeURIComponent(id)}${act === '' ? '' : `/${act}`}`;
}

export function webhookPages(): ReadPage<Webhook> {
  return adminPages(COLLECTION);
}

/** The newest first. */
export function deliveryPages(id: string): ReadPage<Delivery> {
  return adminPages(`${COLLECTION}/${encodeURIComponent(id)}/deliveries`);
}

export function deadLetterPages(id: string): ReadPage<DeadLetter> {
  return adminPages(`${COLLECTION}/${encodeURIComponent(id)}/dead-letters`);
}

export async function readWebhook(id: string, signal?: AbortSignal): Promise<TaggedWebhook> {
  return tagged(await ask({ path: pathOf(id), scope: ADMIN, ...(signal ? { signal } : {}) }));
}

function tagged({ body, etag }: Answer<{ data: Webhook }>): TaggedWebhook {
  return { webhook: body.data, etag };
}

/** `Idempotency-Key` is not read here: a remembered answer would hold the secret. */
export async function createWebhook(
  wish: Wish & { readonly from: 'present' | 'oldest' },
): Promise<IssuedWebhook> {
  const { body } = await ask<{ data: IssuedWebhook }>({
    method: 'POST',
    path: `admin/v1/${COLLECTION}`,
    body: { data: wish },
    scope: ADMIN,
  });
  return body.data;
}

/** Changes what is said, on the target that the ETag names. Throws Problem `stale` where it is another one by now. */
export async function updateWebhook(
  id: string,
  said: Partial<Wish>,
  etag: string | undefined,
): Promise<void> {
  await ask({
    method: 'PUT',
    path: pathOf(id),
    headers: condition(etag),
    body: { data: said },
    scope: ADMIN,
  });
}

export async function deleteWebhook(id: string, etag: string | undefined): Promise<void> {
  await ask({ method: 'DELETE', path: pathOf(id), headers: condition(etag), scope: ADMIN });
}

export async function turnWebhook(id: string, act: 'disable' | 'enable'): Promise<void> {
  await ask({ method: 'POST', path: pathOf(id, act), scope: ADMIN });
}

export async function rotateWebhook(id: string, overlapSeconds: number): Promise<IssuedWebhook> {
  const { body } = await ask<{ data: IssuedWebhook }>({
    method: 'POST',
    path: pathOf(id, 'rotate'),
    body: { data: { overlap_seconds: overlapSeconds } },
    scope: ADMIN,
  });
  return body.data;
}

/** Sends a dead letter again, or with `*` all that were not received yet; answers how many. */
export async function redeliver(id: string, letter: string): Promise<number> {
  const { body } = await ask<{ data: { dead_letters: number } }>({
    method: 'POST',
    path: pathOf(id, 'redeliver'),
    body: { data: { dead_letter: letter } },
    scope: ADMIN,
  });
  return body.data.dead_letters;
}
