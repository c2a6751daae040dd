import { createHash, timingSafeEqual } from 'node:crypto';
import { type Act, type ActName, actOf, type Occasion } from '../domain/act.ts';
import { Refusal } from '../domain/fault.ts';
import type { Ambient, Revision } from '../domain/id.ts';
import { areGrantable, type Realms, type Scopes } from '../domain/principal.ts';
import { text } from '../domain/text.ts';
import type { AccessStore, Client } from './port.ts';

const SECRET_BYTES = 32;
const SECRET_PREFIX = 'ars_';

/** What people call a client: a text like any other, so that no list or log is written on by it. */
export const CLIENT_NAME = text(255);

/** How the identifier of a client looks: what we mint, or what a bootstrap file says. */
export const CLIENT_ID_PATTERN = /^[A-Za-z0-9._~-]{1,64}$/;

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

/** Why these rights do not stand on one client; undefined where they do. */
export function ruleAgainst({ scopes, realms }: Grant): string | undefined {
  if (scopes.size === 0) return 'a client needs at least one scope';
  return areGrantable(scopes, realms)
    ? undefined
    : 'the scope admin reaches every realm: a client that holds it cannot be limited to some realms';
}

function assertGrantable(grant: Grant): void {
  const rule = ruleAgainst(grant);
  if (rule !== undefined) throw new Refusal(rule);
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

/** A change, perhaps made from the very client that it replaces; undefined where there is nothing to change. */
export type Patch = ClientPatch | ((found: Client) => ClientPatch | undefined);

/** What came of asking for a change to a client, or for its end. */
export type Edited =
  | { readonly kind: 'done'; readonly client: Client }
  | { readonly kind: 'absent' }
  /** It is no longer the one that was seen. */
  | { readonly kind: 'moved' }
  /** Its rights would not go together. */
  | { readonly kind: 'refused'; readonly rule: string };

/** Changes what is named and nothing else; with `seen`, only the client that still carries this revision. */
export async function editClient(
  store: AccessStore,
  clientId: string,
  { patch, seen }: { readonly patch: Patch; readonly seen?: Revision | undefined },
  ambient: Occasion,
): Promise<Edited> {
  for (;;) {
    const found = await store.client(clientId);
    if (!found) return { kind: 'absent' };
    if (seen !== undefined && found.revision !== seen) return { kind: 'moved' };
    const wanted = typeof patch === 'function' ? patch(found) : patch;
    if (!wanted) return { kind: 'done', client: found };
    const client = changed(found, wanted, ambient);
    const rule = ruleAgainst(client);
    if (rule !== undefined) return { kind: 'refused', rule };
    const act = clientAct(actionOf(wanted), found, client, ambient);
    if (await store.updateClient(client, found.revision, act)) return { kind: 'done', client };
  }
}

function changed(found: Client, wanted: ClientPatch, ambient: Ambient): Client {
  if (wanted.name !== undefined) assertNamed(wanted.name);
  const updatedAt = Math.max(found.updatedAt, ambient.now());
  return { ...found, ...wanted, updatedAt, revision: ambient.mintRevision() };
}

/**
 * Deletes a client: its secret gets no token, and those it has are refused within a second. What it did stays in the log.
 */
export async function deleteClient(
  store: AccessStore,
  clientId: string,
  seen: Revision | undefined,
  ambient: Occasion,
): Promise<Edited> {
  for (;;) {
    const client = await store.client(clientId);
    if (!client) return { kind: 'absent' };
    if (seen !== undefined && client.revision !== seen) return { kind: 'moved' };
    const act = actOf('client.deleted', { object: clientId, detail: { before: toldOf(client) } }, ambient);
    if (await store.removeClient(clientId, client.revision, act)) return { kind: 'done', client };
  }
}

/** The client that an edit without `seen` came to. Throws Refusal for an unknown one, or rights that do not go together. */
export function edited(clientId: string, outcome: Edited): Client {
  if (outcome.kind === 'done') return outcome.client;
  if (outcome.kind === 'refused') throw new Refusal(outcome.rule);
  throw new Refusal(`there is no client ${clientId}: authrealm client list names them all`);
}

/** Changes a client for someone at the machine. Answers it as it now is. Throws Refusal as `edited` does. */
export async function changeClient(
  store: AccessStore,
  clientId: string,
  patch: Patch,
  ambient: Occasion,
): Promise<Client> {
  return edited(clientId, await editClient(store, clientId, { patch }, ambient));
}

/** A new secret, and the change that gives it to a client; the old one lives on for the overlap. */
export function renewal(
  overlapMs: number,
  ambient: Ambient,
): { readonly secret: string; readonly patch: Patch } {
  const secret = mintSecret(ambient);
  const expiresAt = ambient.now() + overlapMs;
  return {
    secret,
    patch: ({ secretDigest }) => ({
      secretDigest: digestSecret(secret),
      previous: overlapMs > 0 ? { digest: secretDigest, expiresAt } : undefined,
    }),
  };
}

/** A new secret; the old one lives on for the overlap, so that callers can be moved one by one. */
export async function rotateSecret(
  store: AccessStore,
  clientId: string,
  overlapMs: number,
  ambient: Occasion,
): Promise<Issued> {
  const { secret, patch } = renewal(overlapMs, ambient);
  return { client: await changeClient(store, clientId, patch, ambient), secret };
}

/** A client as an operator describes it, its secret included. */
export interface DescribedClient extends Grant {
  readonly clientId: string;
  readonly secret: string;
  readonly name: string;
}

/** Makes a described client exist exactly as described; one that was disabled stays disabled. */
export async function ensureClient(
  store: AccessStore,
  described: DescribedClient,
  ambient: Occasion,
): Promise<void> {
  const { clientId, secret, name, scopes, realms } = described;
  const { client } = draftClient(name, { scopes, realms }, ambient, { clientId, secret });
  const found = await store.client(clientId);
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
    JSON.stringify([name, [...scopes].sort(), [...realms].sort(), Buffer.from(secretDigest).toString('hex')]);
  return flat(found) === flat(described);
}
