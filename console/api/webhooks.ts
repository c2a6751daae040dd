import { type Administered, administeredPath, collectionOf } from './administered.ts';
import { ADMIN, adminPages } from './administration.ts';
import { ask } from './caller.ts';
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

export type Webhook = Administered & Wish;

/** What a new target is told first: what changes from now on, or everything that the feed keeps. */
export interface FirstWish extends Wish {
  readonly from: 'present' | 'oldest';
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

export const webhooks = collectionOf<Wish, FirstWish>(COLLECTION, 'secret');

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

/** Sends a dead letter again, or with `*` all that were not received yet; answers how many. */
export async function redeliver(id: string, letter: string): Promise<number> {
  const { body } = await ask<{ data: { dead_letters: number } }>({
    method: 'POST',
    path: administeredPath(COLLECTION, id, 'redeliver'),
    body: { data: { dead_letter: letter } },
    scope: ADMIN,
  });
  return body.data.dead_letters;
}
