import { createHash, timingSafeEqual } from 'node:crypto';
import { type Act, type ActName, actOf, type Occasion } from '../domain/act.ts';
import { Refusal } from '../domain/fault.ts';
import type { Ambient } from '../domain/id.ts';
import { areGrantable, type Realms, type Scopes } from '../domain/principal.ts';
import { text } from '../domain/text.ts';
import type { AccessStore, Client } from './port.ts';

const SECRET_BYTES = 32;
const SECRET_PREFIX = 'ars_';

/** What people call a client: a text like any other, so that no list or log is written on by it. */
export const CLIENT_NAME = text(255);

export interface Grant {
  readonly scopes: Scopes;
  readonly realms: Realms;
}

/** A client as it was just given a secret: the only moment the secret is known. */
export interface Issued {
  readonly client: Client;
  readonly secret: string;
}

/** 256 random bits behind a prefix that secret scanners know. */
export function mintSecret(ambient: Pick<Ambient, 'randomBytes'>): string {
  return SECRET_PREFIX + Buffer.from(ambient.randomBytes(SECRET_BYTES)).toString('base64url');
}

export function digestSecret(secret: string): Uint8Array {
  return createHash('sha256').update(secret).digest();
}

const NO_DIGEST = new Uint8Array(32);

/** Whether this is the client's secret, or the one before it within its overlap. Always the same work. */
export function isSecretOf(client: Client | undefined, secret: string, now: number): boolean {
  const digest = digestSecret(secret);
  const isCurrent = timingSafeEqual(digest, client?.secretDigest ?? NO_DIGEST);
  const isPrevious = timingSafeEqual(digest, client?.previous?.digest ?? NO_DIGEST);
  const overlaps = (client?.previous?.expiresAt ?? 0) > now;
  return client !== undefined && client.disabledAt === undefined && (isCurrent || (isPrevious && overlaps));
}

function assertNamed(name: string): void {
  const [issue] = CLIENT_NAME.safeParse(name).error?.issues ?? [];
  if (issue) throw new Refusal(`the name of a client ${issue.message}`);
}

function assertGrantable({ scopes, realms }: Grant): void {
  if (scopes.size === 0) throw new Refusal('a client needs at least one scope');
  if (!areGrantable(scopes, realms)) {
    throw new Refusal(
      'the scope admin reaches every realm: a client that holds it cannot be limited to some realms',
    );
  }
}

/** A client of this name and these rights, not stored yet. Throws Refusal where the rights do not go together. */
export function draftClient(
  name: string,
  grant: Grant,
  ambient: Ambient,
  given: { readonly clientId?: string; readonly secret?: string } = {},
): Issued {
  assertNamed(name);
  assertGrantable(grant);
  const secret = given.secret ?? mintSecret(ambient);
  const now = ambient.now();
  const client: Client = {
    clientId: given.clientId ?? ambient.mintId(),
    name,
    ...grant,
    disabledAt: undefined,
    secretDigest: digestSecret(secret),
    previous: undefined,
    createdAt: now,
    updatedAt: now,
    revision: ambient.mintRevision(),
  };
  return { client, secret };
}

export async function createClient(
  store: AccessStore,
  name: string,
  grant: Grant,
  ambient: Occasion,
): Promise<Issued> {
  const issued = draftClient(name, grant, ambient);
  await store.insertClient(issued.client, clientAct('client.created', undefined, issued.client, ambient));
  return issued;
}

/** What the log tells of a change to a client: its rights before and after, and never a secret. */
function clientAct(
  action: ActName,
  before: Client | undefined,
  after: Client,
  occasion: Pick<Occasion, 'now' | 'asker'>,
): Act {
  const detail = { ...(before ? { before: toldOf(before) } : {}), after: toldOf(after) };
  return actOf(action, { object: after.clientId, detail }, occasion);
}

function toldOf({ name, scopes, realms, disabledAt }: Client) {
  return {
    name,
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    is_disabled: disabledAt !== undefined,
  };
}

/** What a patch does, as the log calls it. */
function actionOf(patch: ClientPatch): ActName {
  if (patch.secretDigest !== undefined) return 'client.rotated';
  if ('disabledAt' in patch) return patch.disabledAt === undefined ? 'client.enabled' : 'client.disabled';
  return 'client.changed';
}

export async function listClients(store: AccessStore): Promise<readonly Client[]> {
  return (await store.table(undefined))?.clients ?? [];
}

export type ClientPatch = Partial<
  Pick<Client, 'name' | 'scopes' | 'realms' | 'disabledAt' | 'secretDigest' | 'previous'>
>;

/**
 * Changes what is named and nothing else; a patch that depends on the client is made from the very client that it
 * replaces. Answers the client as it now is. Throws Refusal for an unknown client.
 */
export async function changeClient(
  store: AccessStore,
  clientId: string,
  patch: ClientPatch | ((found: Client) => ClientPatch),
  ambient: Occasion,
): Promise<Client> {
  for (;;) {
    const found = (await listClients(store)).find((client) => client.clientId === clientId);
    if (!found) throw new Refusal(`there is no client ${clientId}: authrealm client list names them all`);
    const wanted = typeof patch === 'function' ? patch(found) : patch;
    if (wanted.name !== undefined) assertNamed(wanted.name);
    const updatedAt = Math.max(found.updatedAt, ambient.now());
    const changed = { ...found, ...wanted, updatedAt, revision: ambient.mintRevision() };
    assertGrantable(changed);
    const act = clientAct(actionOf(wanted), found, changed, ambient);
    if (await store.updateClient(changed, found.revision, act)) return changed;
  }
}

/** A new secret; the old one lives on for the overlap, so that callers can be moved one by one. */
export async function rotateSecret(
  store: AccessStore,
  clientId: string,
  overlapMs: number,
  ambient: Occasion,
): Promise<Issued> {
  const secret = mintSecret(ambient);
  const expiresAt = ambient.now() + overlapMs;
  const renewed = ({ secretDigest }: Client): ClientPatch => ({
    secretDigest: digestSecret(secret),
    previous: overlapMs > 0 ? { digest: secretDigest, expiresAt } : undefined,
  });
  const client = await changeClient(store, clientId, renewed, ambient);
  return { client, secret };
}

/** Makes a described client exist exactly as described; one that was disabled stays disabled. */
export async function ensureClient(
  store: AccessStore,
  described: { readonly clientId: string; readonly secret: string; readonly name: string } & Grant,
  ambient: Occasion,
): Promise<void> {
  const { clientId, secret, name, scopes, realms } = described;
  const { client } = draftClient(name, { scopes, realms }, ambient, { clientId, secret });
  const found = (await listClients(store)).find((each) => each.clientId === clientId);
  // Read first: a start where nothing is to be done needs no lock.
  if (found && isAsDescribed(found, client)) return;
  if (!found) {
    const act = clientAct('client.created', undefined, client, ambient);
    if (await store.insertClient(client, act)) return;
  }
  await changeClient(
    store,
    clientId,
    { name, scopes, realms, secretDigest: client.secretDigest, previous: undefined },
    ambient,
  );
}

function isAsDescribed(found: Client, described: Client): boolean {
  const flat = ({ name, scopes, realms, secretDigest }: Client) =>
    JSON.stringify([
      name,
      [...scopes].sort(),
      realms === '*' ? realms : [...realms].sort(),
      Buffer.from(secretDigest).toString('hex'),
    ]);
  return flat(found) === flat(described);
}
