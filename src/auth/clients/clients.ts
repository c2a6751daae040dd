import { createHash, timingSafeEqual } from 'node:crypto';
import {
  type AuditAction,
  type AuditContext,
  type AuditEntry,
  createAuditEntry,
} from '../../domain/audit_entry.ts';
import { Fault } from '../../domain/fault.ts';
import type { Clock, Revision } from '../../domain/id.ts';
import { assertFound, assertSeen, changeManaged, deleteManaged, type Edit } from '../../domain/managed.ts';
import { areGrantable, type Realms, type Scopes } from '../../domain/principal.ts';
import { text } from '../../domain/text/text.ts';
import type { AuthStore, Client } from '../port.ts';

const SECRET_BYTES = 32;
const SECRET_PREFIX = 'ars_';

/** What people call a client: a text like any other, so that no list or log is written on by it. */
export const CLIENT_NAME = text(255);

/** How the identifier of a client looks: what we mint, or what a bootstrap file says. */
export const CLIENT_ID_PATTERN = /^[A-Za-z0-9._~-]{1,64}$/;

export interface ClientRights {
  readonly scopes: Scopes;
  readonly realms: Realms;
}

/** A client as it was just given a secret: the only moment the secret is known. */
export interface IssuedClient {
  readonly client: Client;
  readonly secret: string;
}

/** 256 random bits behind a prefix that secret scanners know. */
export function mintClientSecret(clock: Pick<Clock, 'randomBytes'>): string {
  return SECRET_PREFIX + Buffer.from(clock.randomBytes(SECRET_BYTES)).toString('base64url');
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

/** Why one client cannot hold these rights; undefined where it can. */
export function brokenRightsRule({ scopes, realms }: ClientRights): string | undefined {
  if (scopes.size === 0) return 'a client needs at least one scope';
  return areGrantable(scopes, realms)
    ? undefined
    : 'the scope admin reaches every realm: a client that holds it cannot be limited to some realms';
}

function assertGrantable(rights: ClientRights): void {
  const rule = brokenRightsRule(rights);
  if (rule !== undefined) throw new Fault('conflict', [{ field: 'data.scopes', rule }]);
}

/** A client with this name and these rights, not stored yet. Throws Fault `conflict` for rights that no client can hold. */
export function draftClient(
  name: string,
  rights: ClientRights,
  clock: Clock,
  options: { readonly clientId?: string; readonly secret?: string } = {},
): IssuedClient {
  assertGrantable(rights);
  const secret = options.secret ?? mintClientSecret(clock);
  const now = clock.now();
  const client: Client = {
    clientId: options.clientId ?? clock.mintId(),
    name,
    ...rights,
    disabledAt: undefined,
    secretDigest: digestSecret(secret),
    previous: undefined,
    createdAt: now,
    updatedAt: now,
    revision: clock.mintRevision(),
  };
  return { client, secret };
}

export async function createClient(
  store: AuthStore,
  name: string,
  rights: ClientRights,
  auditContext: AuditContext,
): Promise<IssuedClient> {
  const issued = draftClient(name, rights, auditContext);
  await store.insertClient(issued.client, creationEntry(issued.client, auditContext));
  return issued;
}

function creationEntry(client: Client, auditContext: AuditContext): AuditEntry {
  return createAuditEntry(
    'client.created',
    { object: client.clientId, detail: { after: auditState(client) } },
    auditContext,
  );
}

/** State in the audit log: the rights, and never a secret. */
function auditState({ name, scopes, realms, disabledAt }: Client) {
  return {
    name,
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    is_disabled: disabledAt !== undefined,
  };
}

/** The name of a change in the audit log. */
function auditActionOf(before: Client, after: Client): AuditAction {
  if (after.secretDigest !== before.secretDigest) return 'client.rotated';
  if (after.disabledAt === before.disabledAt) return 'client.changed';
  return after.disabledAt === undefined ? 'client.enabled' : 'client.disabled';
}

export async function listClients(store: AuthStore): Promise<readonly Client[]> {
  return (await store.state(undefined))?.clients ?? [];
}

export type ClientEdit = Edit<
  Client,
  Partial<Pick<Client, 'name' | 'scopes' | 'realms' | 'disabledAt' | 'secretDigest' | 'previous'>>
>;

/** Rejects with Fault `not_found`, or `conflict` for rights that no client can hold. */
export async function changeClient(
  store: AuthStore,
  clientId: string,
  edit: ClientEdit,
  auditContext: AuditContext,
): Promise<Client> {
  const changed = await changeManaged<Client>(
    {
      find: () => store.client(clientId),
      edit,
      async save(client, found) {
        assertGrantable(client);
        const detail = { before: auditState(found), after: auditState(client) };
        const auditEntry = createAuditEntry(
          auditActionOf(found, client),
          { object: clientId, detail },
          auditContext,
        );
        return store.updateClient(client, found.revision, auditEntry);
      },
    },
    auditContext,
  );
  return assertFound(changed);
}

/**
 * Deletes a client: its secret gets no token, and those it has are refused within a second. Its entries in the audit log
 * stay. Rejects with Fault `precondition_failed` where `seen` is not its revision.
 */
export function deleteClient(
  store: AuthStore,
  clientId: string,
  seen: Revision | undefined,
  auditContext: AuditContext,
): Promise<boolean> {
  return deleteManaged<Client>({
    find: () => store.client(clientId),
    seen,
    remove(client) {
      const detail = { before: auditState(client) };
      const auditEntry = createAuditEntry('client.deleted', { object: clientId, detail }, auditContext);
      return store.removeClient(clientId, client.revision, auditEntry);
    },
  });
}

/** A new secret; the old one remains valid during the overlap, so that callers can be moved one by one. */
export async function rotateSecret(
  store: AuthStore,
  clientId: string,
  { overlapMs, seen }: { readonly overlapMs: number; readonly seen?: Revision | undefined },
  auditContext: AuditContext,
): Promise<IssuedClient> {
  const secret = mintClientSecret(auditContext);
  const expiresAt = auditContext.now() + overlapMs;
  const edit: ClientEdit = (found) => {
    assertSeen(found, seen);
    const previous = overlapMs > 0 ? { digest: found.secretDigest, expiresAt } : undefined;
    return { secretDigest: digestSecret(secret), previous };
  };
  return { client: await changeClient(store, clientId, edit, auditContext), secret };
}

/** A client as an operator describes it, its secret included. */
export interface ClientSpec extends ClientRights {
  readonly clientId: string;
  readonly secret: string;
  readonly name: string;
}

/** Makes a described client exist exactly as described; one that was disabled stays disabled. */
export async function ensureClient(store: AuthStore, spec: ClientSpec, clock: AuditContext): Promise<void> {
  const { clientId, secret, name, scopes, realms } = spec;
  const { client } = draftClient(name, { scopes, realms }, clock, { clientId, secret });
  const found = await store.client(clientId);
  // Read first: a start where nothing is to be done needs no lock.
  if (found && matchesSpec(found, client)) return;
  if (!found) {
    if (await store.insertClient(client, creationEntry(client, clock))) return;
  }
  const patch = { name, scopes, realms, secretDigest: client.secretDigest, previous: undefined };
  await changeClient(store, clientId, patch, clock);
}

function matchesSpec(found: Client, spec: Client): boolean {
  const flat = ({ name, scopes, realms, secretDigest }: Client) =>
    JSON.stringify([name, [...scopes].sort(), [...realms].sort(), Buffer.from(secretDigest).toString('hex')]);
  return flat(found) === flat(spec);
}
