import { createHash, timingSafeEqual } from 'node:crypto';
import { Fault, type FieldError, Refusal } from '../../model/fault.ts';
import type { Clock, Revision } from '../../model/id.ts';
import { describeImplicit } from '../../model/implicit_rights.ts';
import {
  type AuditAction,
  type AuditContext,
  type AuditEntry,
  createAuditEntry,
} from '../../model/log/audit_entry.ts';
import { applyEdit, assertFound, assertRevision, type Edit } from '../../model/managed.ts';
import { areGrantable, IMPLICIT_SCOPES, intersectRealms, type Principal } from '../../model/principal.ts';
import { text } from '../../model/text/text.ts';
import type { AuthStore } from '../store/access.ts';
import type { Client, ClientRights } from '../store/clients.ts';
import { loggedRights } from '../tokens/claim_rights.ts';

const SECRET_BYTES = 32;
const SECRET_PREFIX = 'ars_';

/** The name of a client; without control characters, so that it cannot forge lines of lists and logs. */
export const CLIENT_NAME = text(255);

/** The syntax of client IDs, generated or from a bootstrap file. */
export const CLIENT_ID_PATTERN = /^[A-Za-z0-9._~-]{1,64}$/;

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
  const isAccepted = isCurrent || (isPrevious && overlaps);
  return client !== undefined && client.disabledAt === undefined && isAccepted;
}

export function principalBySecret({ clientId, scopes, realms, endUserAddress }: Client): Principal {
  return { clientId, scopes, realms, endUserAddress };
}

/** What the ID of a client gives without the secret; undefined for nothing. */
export function principalByIdAlone(client: Client): Principal | undefined {
  const { clientId, realms, implicitScopes, implicitRealms = '*', ratePerAddress, storefronts = [] } = client;
  if (!implicitScopes?.size || !ratePerAddress) return undefined;
  const implicit = { ratePerAddress, storefronts };
  return { clientId, scopes: implicitScopes, realms: intersectRealms(implicitRealms, realms), implicit };
}

/** The rule that these rights break; undefined for valid rights. The number of networks is bounded where they are read. */
export function brokenRightsRule(rights: ClientRights): FieldError | undefined {
  const { scopes, realms, endUserAddress, implicitScopes, implicitRealms = '*', ratePerAddress } = rights;
  if (scopes.size === 0) return { field: 'data.scopes', rule: 'a client needs at least one scope' };
  if (!areGrantable(scopes, realms)) return { field: 'data.scopes', rule: ADMIN_REACHES_ALL };
  if (scopes.has('sign-in') && !endUserAddress) return NO_END_USER_ADDRESS;
  if (!implicitScopes?.size) return undefined;
  if (![...implicitScopes].every((scope) => IMPLICIT_SCOPES.has(scope)))
    return {
      field: 'data.implicit_scopes',
      rule: `the ID alone gives at most ${[...IMPLICIT_SCOPES].join(', ')}`,
    };
  if (!ratePerAddress)
    return { field: 'data.rate_per_address', rule: 'the ID alone needs a rate per address' };
  const reached = intersectRealms(implicitRealms, realms);
  return reached === '*' || reached.size === 0 ? NO_IMPLICIT_REALM : undefined;
}

const NO_IMPLICIT_REALM: FieldError = {
  field: 'data.implicit_realms',
  rule: 'the ID alone needs named realms, which the client reaches',
};

const NO_END_USER_ADDRESS: FieldError = {
  field: 'data.end_user_address',
  rule: 'the scope sign-in needs it: header, or none for a client that cannot report the address of the end user',
};

const ADMIN_REACHES_ALL =
  'the scope admin reaches every realm: a client that holds it cannot be limited to some realms';

function assertGrantable(rights: ClientRights): void {
  const broken = brokenRightsRule(rights);
  if (broken) throw new Fault('conflict', [broken]);
}

/** Builds a client without storing it. Throws Fault `conflict` for invalid rights. */
export function draftClient(
  name: string,
  rights: ClientRights,
  clock: Clock,
  options: { readonly clientId?: string; readonly secret?: string } = {},
): IssuedClient {
  assertGrantable(rights);
  const { clientId = clock.mintId(), secret = mintClientSecret(clock) } = options;
  const now = clock.now();
  const client = {
    clientId,
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

const NOT_IMPLICIT = describeImplicit({});

/** State in the audit log: the rights, and never a secret. */
function auditState(client: Client) {
  const { name, endUserAddress, disabledAt } = client;
  const implicit = describeImplicit(client);
  return {
    name,
    ...loggedRights(client),
    ...(Bun.deepEquals(implicit, NOT_IMPLICIT) ? {} : implicit),
    end_user_address: endUserAddress,
    is_disabled: disabledAt !== undefined,
  };
}

function auditActionOf(before: Client, after: Client): AuditAction {
  if (after.secretDigest !== before.secretDigest) return 'client.rotated';
  if (after.disabledAt === before.disabledAt) return 'client.changed';
  return after.disabledAt === undefined ? 'client.enabled' : 'client.disabled';
}

export type ClientEdit = Edit<
  Client,
  Partial<Pick<Client, 'name' | 'disabledAt' | 'secretDigest' | 'previous'> & ClientRights>
>;

/** Rejects with Fault `not_found`, or `conflict` for invalid rights. */
export async function changeClient(
  store: AuthStore,
  clientId: string,
  edit: ClientEdit,
  auditContext: AuditContext,
): Promise<Client> {
  const changed = await store.changeClient(clientId, (found) => {
    const after = applyEdit(found, edit, auditContext);
    if (!after) return undefined;
    assertGrantable(after);
    const detail = { before: auditState(found), after: auditState(after) };
    const action = auditActionOf(found, after);
    return { after, auditEntry: createAuditEntry(action, { object: clientId, detail }, auditContext) };
  });
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
  return store.removeClient(clientId, (found) => {
    assertRevision(found, seen);
    const detail = { before: auditState(found) };
    return createAuditEntry('client.deleted', { object: clientId, detail }, auditContext);
  });
}

/** Generates a new secret; the old one stays valid during the overlap, so that callers can switch one by one. */
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
  const { clientId, secret, name, ...rights } = spec;
  const { client } = draftClient(name, rights, clock, { clientId, secret });
  const found = await store.client(clientId);
  if (found?.isForged) {
    throw new Refusal(
      `the client ${clientId} was changed in the database without the service: delete it with ` +
        `"authrealm client delete ${clientId}", and start again`,
    );
  }
  // Read first: a start without changes needs no write lock.
  if (found && matchesSpec(found, client)) return;
  if (!found && (await store.insertClient(client, creationEntry(client, clock)))) return;
  const { secretDigest } = client;
  const patch = { name, ...rights, secretDigest, previous: undefined };
  await changeClient(store, clientId, patch, clock);
}

function matchesSpec(found: Client, spec: Client): boolean {
  const described = ({ name, scopes, realms, endUserAddress, secretDigest, ...client }: Client) => [
    name,
    scopes,
    realms,
    endUserAddress,
    Buffer.from(secretDigest),
    describeImplicit(client),
  ];
  return Bun.deepEquals(described(found), described(spec));
}
