import type { Revision, Uuid } from '../../domain/id.ts';
import { describeImplicit, type ImplicitRights, parseImplicit } from '../../domain/implicit_rights.ts';
import type { EndUserAddress, Realms, Scopes } from '../../domain/principal.ts';
import { all, execute, first, type Long, type SqlValue, type Work } from '../transaction_work.ts';
import type { RowMacs } from './row_macs.ts';

/** What a client may do: by its secret, and by its ID alone. */
export interface ClientRights extends ImplicitRights {
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** Required for `sign-in`. */
  readonly endUserAddress?: EndUserAddress | undefined;
}

/**
 * An API client, which may request tokens. Instants are milliseconds since the epoch; secrets are SHA-256
 * digests.
 */
export interface Client extends ClientRights {
  readonly clientId: string;
  readonly name: string;
  readonly disabledAt: number | undefined;
  readonly secretDigest: Uint8Array;
  /** The digest before the last rotation, and until when it is accepted. */
  readonly previous: { readonly digest: Uint8Array; readonly expiresAt: number } | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly revision: Revision;
  /** Its row was not written by the service: it is not honoured, and can only be deleted. */
  readonly isForged?: boolean;
  /** Rows with rights to further realms were not written by the service, and are not among `realms`. */
  readonly hasForgedRealms?: boolean;
}

const CLIENTS = `select client_id, name, scopes, all_realms, disabled_at, secret_digest, previous_digest,
  previous_expires_at, created_at, updated_at, revision, implicit, end_user_address, mac from client`;
const ALL = `${CLIENTS} order by created_at, client_id`;
const ONE = `${CLIENTS} where client_id = ?`;
const AFTER = `${CLIENTS} where client_id > ? order by client_id limit ?`;
const REALMS = 'select client_id, realm_id, mac from client_realm';
const REALMS_OF_ALL = `${REALMS} order by client_id, realm_id`;
/** Parameters: the IDs after which and up to which. */
const REALMS_AMONG = `${REALMS} where client_id > ? and client_id <= ? order by client_id, realm_id`;
const REALMS_OF_ONE = `${REALMS} where client_id = ? order by realm_id`;
const INSERT = `insert into client (name, scopes, all_realms, disabled_at, secret_digest, previous_digest,
  previous_expires_at, created_at, updated_at, revision, implicit, end_user_address, mac, client_id)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`;
const UPDATE = `update client set name = ?, scopes = ?, all_realms = ?, disabled_at = ?, secret_digest = ?,
  previous_digest = ?, previous_expires_at = ?, created_at = ?, updated_at = ?, revision = ?,
  implicit = ?, end_user_address = ?, mac = ?
  where client_id = ? and revision = ?`;
const CLEAR_REALMS = 'delete from client_realm where client_id = ?';
const INSERT_REALM = 'insert into client_realm (client_id, realm_id, mac) values (?, ?, ?)';
const REMOVE_USE = 'delete from client_use where client_id = ?';
const REMOVE = 'delete from client where client_id = ? and revision = ?';

interface ClientRow {
  readonly client_id: string;
  readonly name: string;
  readonly scopes: string;
  readonly all_realms: number;
  readonly disabled_at: Long | null;
  readonly secret_digest: Uint8Array;
  readonly previous_digest: Uint8Array | null;
  readonly previous_expires_at: Long | null;
  readonly created_at: Long;
  readonly updated_at: Long;
  readonly revision: Revision;
  /** The JSON of `describeImplicit`. */
  readonly implicit: string;
  readonly end_user_address: EndUserAddress | null;
  readonly mac: Uint8Array | null;
}

interface RealmRow {
  readonly client_id: string;
  readonly realm_id: Uuid;
  readonly mac: Uint8Array | null;
}

/** Oldest first. */
export function* readAllClients(macs: RowMacs): Work<readonly Client[]> {
  const realms = yield* all<RealmRow>(REALMS_OF_ALL);
  return clientsOf(yield* all<ClientRow>(ALL), realms, macs);
}

export function* readClient(clientId: string, macs: RowMacs): Work<Client | undefined> {
  const row = yield* first<ClientRow>(ONE, clientId);
  if (!row) return undefined;
  return clientOf(row, row.all_realms === 1 ? [] : yield* all<RealmRow>(REALMS_OF_ONE, clientId), macs);
}

/** In the order of their IDs. */
export function* readClientsAfter(after: string, limit: number, macs: RowMacs): Work<readonly Client[]> {
  const rows = yield* all<ClientRow>(AFTER, after, limit);
  const last = rows.at(-1);
  return last ? clientsOf(rows, yield* all<RealmRow>(REALMS_AMONG, after, last.client_id), macs) : [];
}

/** Every statement that reads. */
export const CLIENT_TEXTS = [ALL, ONE, AFTER, REALMS_OF_ALL, REALMS_AMONG, REALMS_OF_ONE] as const;

function clientsOf(
  rows: readonly ClientRow[],
  realms: readonly RealmRow[],
  macs: RowMacs,
): readonly Client[] {
  const listed = Map.groupBy(realms, (row) => row.client_id);
  return rows.map((row) => clientOf(row, listed.get(row.client_id) ?? [], macs));
}

/** Returns false if the ID exists. */
export function* insertClient(client: Client, macs: RowMacs): Work<boolean> {
  const isNew = (yield* execute(INSERT, ...columnsOf(client, macs))) === 1;
  if (isNew) yield* replaceRealms(client, macs);
  return isNew;
}

/** Returns false unless the stored revision is `expected`. */
export function* updateClient(client: Client, expected: Revision, macs: RowMacs): Work<boolean> {
  const isUpdated = (yield* execute(UPDATE, ...columnsOf(client, macs), expected)) === 1;
  if (isUpdated) yield* replaceRealms(client, macs);
  return isUpdated;
}

/** Returns false unless the client exists with the revision `expected`; the caller must then roll back. */
export function* removeClient(clientId: string, expected: Revision): Work<boolean> {
  yield* execute(CLEAR_REALMS, clientId);
  yield* execute(REMOVE_USE, clientId);
  return (yield* execute(REMOVE, clientId, expected)) === 1;
}

function* replaceRealms({ clientId, realms, revision }: Client, macs: RowMacs): Work<void> {
  yield* execute(CLEAR_REALMS, clientId);
  if (realms === '*') return;
  for (const realm of realms) {
    yield* execute(INSERT_REALM, clientId, realm, macs.of('client_realm', clientId, realm, revision));
  }
}

/** The parameters of insert and update, the MAC and the ID last. */
function columnsOf(client: Client, macs: RowMacs): readonly SqlValue[] {
  const values = [
    client.name,
    [...client.scopes].join(' '),
    client.realms === '*' ? 1 : 0,
    client.disabledAt ?? null,
    client.secretDigest,
    client.previous?.digest ?? null,
    client.previous?.expiresAt ?? null,
    client.createdAt,
    client.updatedAt,
    client.revision,
    JSON.stringify(describeImplicit(client)),
    client.endUserAddress ?? null,
  ];
  return [...values, macs.of('client', ...values, client.clientId), client.clientId];
}

/** What the MAC of a row covers, in the order of `columnsOf`. Each realm has a row with its own MAC: it goes with the realm. */
function signedValues(row: ClientRow): readonly SqlValue[] {
  return [
    ...[row.name, row.scopes, row.all_realms, row.disabled_at, row.secret_digest, row.previous_digest],
    ...[row.previous_expires_at, row.created_at, row.updated_at, row.revision],
    ...[row.implicit, row.end_user_address, row.client_id],
  ];
}

function clientOf(row: ClientRow, listed: readonly RealmRow[], macs: RowMacs): Client {
  const { client_id, revision } = row;
  const realms = listed.filter(({ mac, realm_id }) =>
    macs.isValid(mac, 'client_realm', client_id, realm_id, revision),
  );
  const isForged = !macs.isValid(row.mac, 'client', ...signedValues(row));
  return Object.freeze({
    clientId: client_id,
    name: row.name,
    scopes: new Set(row.scopes.split(' ').filter(Boolean)),
    realms: row.all_realms === 1 ? '*' : new Set(realms.map(({ realm_id }) => realm_id)),
    disabledAt: row.disabled_at === null ? undefined : Number(row.disabled_at),
    secretDigest: row.secret_digest,
    previous: previousOf(row),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    revision,
    ...(isForged ? {} : parseImplicit(JSON.parse(row.implicit))),
    ...(row.end_user_address === null ? {} : { endUserAddress: row.end_user_address }),
    ...(isForged ? { isForged } : {}),
    ...(realms.length < listed.length ? { hasForgedRealms: true } : {}),
  });
}

function previousOf({ previous_digest: digest, previous_expires_at: at }: ClientRow): Client['previous'] {
  return digest === null || at === null ? undefined : { digest, expiresAt: Number(at) };
}
