import { type Administered, administeredPath, collectionOf } from './administered.ts';
import { ADMIN, adminPages } from './administration.ts';
import { ask } from './caller.ts';
import type { ReadPage } from './pages.ts';
import type { Tagged } from './records.ts';

/** Clients and signing keys, over the paths of administration. */

/** What is said about a client. */
export interface Grant {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly realms: '*' | readonly string[];
}

export type Client = Administered & Grant;

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

const COLLECTION = 'clients';

export const clients = collectionOf<Grant>(COLLECTION, 'client_secret');

export function clientPages(): ReadPage<ListedClient> {
  return adminPages(COLLECTION);
}

/** All of them: an installation has a few. */
export async function readSigningKeys(signal: AbortSignal): Promise<readonly SigningKey[]> {
  const read = adminPages<SigningKey>('signing-keys');
  const keys: SigningKey[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const { items, next } = await read(cursor, signal);
    keys.push(...items);
    cursor = next;
  }
  return keys;
}

/** A client, and when it was last used. */
export async function readUsedClient(id: string, signal: AbortSignal): Promise<Tagged<Client> & Used> {
  const [one, use] = await Promise.all([
    clients.read(id, signal),
    ask<{ data: Used }>({ path: administeredPath(COLLECTION, id, 'use'), signal, scope: ADMIN }),
  ]);
  return { ...one, last_used_at: use.body.data.last_used_at };
}

type Used = Pick<ListedClient, 'last_used_at'>;

export async function createSigningKey(): Promise<void> {
  await ask({ method: 'POST', path: 'admin/v1/signing-keys', scope: ADMIN });
}

export async function withdrawSigningKey(id: string): Promise<void> {
  await ask({ method: 'POST', path: administeredPath('signing-keys', id, 'withdraw'), scope: ADMIN });
}
