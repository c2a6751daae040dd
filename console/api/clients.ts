import { ADMIN, adminPages, condition } from './administration.ts';
import { type Answer, ask } from './caller.ts';
import type { ReadPage } from './pages.ts';

/** Clients and signing keys, over the paths of administration. */

export interface Client {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly realms: '*' | readonly string[];
  readonly is_disabled: boolean;
  readonly previous_secret_expires_at: string | null;
  readonly meta: { readonly created_at: string; readonly updated_at: string };
}

export interface ListedClient extends Client {
  readonly last_used_at: string | null;
}

/** Who may ask for tokens as this client: known to the answer that made it, and to nobody afterwards. */
export interface IssuedClient extends Client {
  readonly client_secret: string;
}

export interface TaggedClient {
  readonly client: Client;
  readonly etag: string | undefined;
}

/** What is said about one. */
export type Grant = Pick<Client, 'name' | 'scopes' | 'realms'>;

export interface SigningKey {
  readonly id: string;
  readonly state: 'signs' | 'next' | 'accepted' | 'retired' | 'withdrawn';
  readonly signs_from: string;
  readonly withdrawn_at: string | null;
  readonly meta: { readonly created_at: string };
}

export function clientPages(): ReadPage<ListedClient> {
  return adminPages('clients');
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

function pathOf(id: string, act = ''): string {
  return `admin/v1/clients/${encodeURIComponent(id)}${act === '' ? '' : `/${act}`}`;
}

function tagged({ body, etag }: Answer<{ data: Client }>): TaggedClient {
  return { client: body.data, etag };
}

/** A client, and when it was last used. */
export async function readClient(id: string, signal: AbortSignal): Promise<TaggedClient & Used> {
  const [one, use] = await Promise.all([
    ask<{ data: Client }>({ path: pathOf(id), signal, scope: ADMIN }),
    ask<{ data: Used }>({ path: pathOf(id, 'use'), signal, scope: ADMIN }),
  ]);
  return { ...tagged(one), last_used_at: use.body.data.last_used_at };
}

type Used = Pick<ListedClient, 'last_used_at'>;

export async function readClientAlone(id: string): Promise<TaggedClient> {
  return tagged(await ask({ path: pathOf(id), scope: ADMIN }));
}

/** `Idempotency-Key` is not read here: a remembered answer would hold the secret. */
export async function createClient(grant: Grant): Promise<IssuedClient> {
  const { body } = await ask<{ data: IssuedClient }>({
    method: 'POST',
    path: 'admin/v1/clients',
    body: { data: grant },
    scope: ADMIN,
  });
  return body.data;
}

/** Changes what is said, on the client that the ETag names. Throws Problem `stale` where it is another one by now. */
export async function updateClient(
  id: string,
  said: Partial<Grant>,
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

export async function deleteClient(id: string, etag: string | undefined): Promise<void> {
  await ask({ method: 'DELETE', path: pathOf(id), headers: condition(etag), scope: ADMIN });
}

export async function turnClient(id: string, act: 'disable' | 'enable'): Promise<void> {
  await ask({ method: 'POST', path: pathOf(id, act), scope: ADMIN });
}

export async function rotateClient(id: string, overlapSeconds: number): Promise<IssuedClient> {
  const { body } = await ask<{ data: IssuedClient }>({
    method: 'POST',
    path: pathOf(id, 'rotate'),
    body: { data: { overlap_seconds: overlapSeconds } },
    scope: ADMIN,
  });
  return body.data;
}

export async function createSigningKey(): Promise<void> {
  await ask({ method: 'POST', path: 'admin/v1/signing-keys', scope: ADMIN });
}

export async function withdrawSigningKey(id: string): Promise<void> {
  const path = `admin/v1/signing-keys/${encodeURIComponent(id)}/withdraw`;
  await ask({ method: 'POST', path, scope: ADMIN });
}
