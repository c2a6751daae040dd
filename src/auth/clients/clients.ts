import { createHash, timingSafeEqual } from 'node:crypto';
import {
  type AuditAction,
  type AuditContext,
  type AuditEntry,
  createAuditEntry,
} from '../../domain/audit_entry.ts';
import { Fault, Refusal } from '../../domain/fault.ts';
import type { Clock, Revision } from '../../domain/id.ts';
import {
  assertFound,
  assertRevision,
  changeManaged,
  deleteManaged,
  type Edit,
} from '../../domain/managed.ts';
import { areGrantable, type Realms, type Scopes } from '../../domain/principal.ts';
import { text } from '../../domain/text/text.ts';
import type { AuthStore, Client } from '../port.ts';

const SECRET_BYTES = 32;
const SECRET_PREFIX = 'ars_';

/** The name of a client; without control characters, so that it cannot forge lines of lists and logs. */
export const CLIENT_NAME = text(255);

/** The syntax of client IDs, generated or from a bootstrap file. */
export const CLIENT_ID_PATTERN = /^[A-Za-z0-9._~-]{1,64}$/;

export interface ClientRights {
  readonly scopes: Scopes;
  readonly realms: Realms;
}

/** A client with its new secret; the secret is known only now. */
export interface IssuedClient {
  readonly client: Client;
  readonly secret: string;
}

/** 256 random bits with a prefix for secret scanners. */
export function mintClientSecret(clock: Pick<Clock, 'randomBytes'>): string {
  return SECRET_PREFIX + Buffer.from(clock.randomBytes(SECRET_BYTES)).toString('base64url');
}

export function digestSecret(secret: string): Uint8Array {
  return createHash('sha256').update(secret).digest();
}

const NO_DIGEST = new Uint8Array(32);

/** Whether this is the client's secret, or its previous one during the overlap. Takes constant time. */
export function isSecretOf(client: Client | undefined, secret: string, now: number): boolean {
  const digest = digestSecret(secret);
  const isCurrent = timingSafeEqual(digest, client?.secretDigest ?? NO_DIGEST);
  const isPrevious = timingSafeEqual(digest, client?.previous?.digest ?? NO_DIGEST);
  const overlaps = (client?.previous?.expiresAt ?? 0) > now;
  return client !== undefined && client.disabledAt === undefined && (isCurrent || (isPrevious && overlaps));
}

/** The rule that these rights break; undefined for valid rights. */
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

/** Builds a client without storing it. Throws Fault `conflict` for invalid rights. */
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

/** Rejects with Fault `not_found`, or `conflict` for invalid rights. */
export async function changeClient(
  store: AuthStore,
  clientId: string,
  edit: ClientEdit,
  auditContext: AuditContext,
): Promise<Client> {
  const changed = await changeManaged<Client>(
    {
      id: clientId,
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
 * Deletes a client: it gets no more tokens, and its tokens are rejected within a second. Its audit entries
 * stay. Rejects with Fault `precondition_failed` if `seen` is not its revision.
 */
export function deleteClient(
  store: AuthStore,
  clientId: string,
  seen: Revision | undefined,
  auditContext: AuditContext,
): Promise<boolean> {
  return deleteManaged<Client>({
    find: () => store.client(clientId),
    expected: seen,
    remove(client) {
      const detail = { before: auditState(client) };
      const auditEntry = createAuditEntry('client.deleted', { object: clientId, detail }, auditContext);
      return store.removeClient(clientId, client.revision, auditEntry);
    },
  });
}

/**
 * Generates a new secret; the old one stays valid during the overlap, so that callers can switch one by one.
 */
export async function rotateSecret(
  store: AuthStore,
  clientId: string,
  { overlapMs, seen }: { readonly overlapMs: number; readonly seen?: Revision | undefined },
  auditContext: AuditContext,
): Promise<IssuedClient> {
  const secret = mintClientSecret(auditContext);
  const expiresAt = auditContext.now() + overlapMs;
  const edit: ClientEdit = (found) => {
    assertRevision(found, seen);
    const previous = overlapMs > 0 ? { digest: found.secretDigest, expiresAt } : undefined;
    return { secretDigest: digestSecret(secret), previous };
  };
  return { client: await changeClient(store, clientId, edit, auditContext), secret };
}

/** A client as described in a bootstrap file, with its secret. */
export interface ClientSpec extends ClientRights {
  readonly clientId: string;
  readonly secret: string;
  readonly name: string;
}

/** Creates or updates a client to match its description; a disabled client stays disabled. Throws Refusal for a forged one. */
export async function ensureClient(store: AuthStore, spec: ClientSpec, clock: AuditContext): Promise<void> {
  const { clientId, secret, name, scopes, realms } = spec;
  const { client } = draftClient(name, { scopes, realms }, clock, { clientId, secret });
  const found = await store.client(clientId);
  if (found?.isForged) {
    throw new Refusal(
      `the client ${clientId} was changed in the database without the service: delete it with ` +
        `"authrealm client delete ${clientId}", and start again`,
    );
  }
  // Read first: a start without changes needs no write lock.
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
