import type { Revision, Uuid } from '../../domain/id.ts';
import { describeImplicit, type ImplicitRights, parseImplicit } from '../../domain/implicit_rights.ts';
import type { EndUserAddress, Realms, Scopes } from '../../domain/principal.ts';
import { clientRealmTable, clientTable } from '../tables/installation.ts';
import { type EncodedRow, type StoredRow, valuesIn } from '../tables/table.ts';
import { all, execute, first, type Row, type Work } from '../transaction_work.ts';
import type { RowMacs } from './row_macs.ts';

/** What a client may do: by its secret, and by its ID alone. */
export interface ClientRights extends ImplicitRights {
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** Required for `sign-in`. */
  readonly endUserAddress?: EndUserAddress | undefined;
}

type ClientColumns = StoredRow<typeof clientTable>;

/**
 * An API client, which may request tokens. Instants are milliseconds since the epoch; secrets are SHA-256
 * digests.
 */
export interface Client
  extends ClientRights,
    Pick<ClientColumns, 'clientId' | 'name' | 'disabledAt' | 'secretDigest'>,
    Pick<ClientColumns, 'createdAt' | 'updatedAt' | 'revision'> {
  /** The digest before the last rotation, and until when it is accepted. */
  readonly previous: { readonly digest: Uint8Array; readonly expiresAt: number } | undefined;
  /** Its row was not written by the service: it is not honoured, and can only be deleted. */
  readonly isForged?: boolean;
  /** Rows with rights to further realms were not written by the service, and are not among `realms`. */
  readonly hasForgedRealms?: boolean;
}

/** Every statement about clients. */
export const CLIENT_TEXTS = {
  all: `${clientTable.select} order by created_at, client_id`,
  one: `${clientTable.select} where client_id = ?`,
  after: `${clientTable.select} where client_id > ? order by client_id limit ?`,
  realmsOfAll: `${clientRealmTable.select} order by client_id, realm_id`,
  /** Parameters: the IDs after which and up to which. */
  realmsAmong: `${clientRealmTable.select} where client_id > ? and client_id <= ? order by client_id, realm_id`,
  realmsOfOne: `${clientRealmTable.select} where client_id = ? order by realm_id`,
  insert: `${clientTable.insert} on conflict do nothing`,
  update: `${clientTable.update} where client_id = ? and revision = ?`,
  clearRealms: 'delete from client_realm where client_id = ?',
  removeUse: 'delete from client_use where client_id = ?',
  remove: 'delete from client where client_id = ? and revision = ?',
};

/** Oldest first. */
export function* readAllClients(macs: RowMacs): Work<readonly Client[]> {
  const realms = yield* all(CLIENT_TEXTS.realmsOfAll);
  return clientsOf(yield* all(CLIENT_TEXTS.all), realms, macs);
}

export function* readClient(clientId: string, macs: RowMacs): Work<Client | undefined> {
  const row = yield* first(CLIENT_TEXTS.one, clientId);
  if (!row) return undefined;
  return clientOf(row, row.all_realms === 1 ? [] : yield* all(CLIENT_TEXTS.realmsOfOne, clientId), macs);
}

/** In the order of their IDs. */
export function* readClientsAfter(after: string, limit: number, macs: RowMacs): Work<readonly Client[]> {
  const rows = yield* all(CLIENT_TEXTS.after, after, limit);
  const last = rows.at(-1);
  if (!last) return [];
  return clientsOf(rows, yield* all(CLIENT_TEXTS.realmsAmong, after, last.client_id as string), macs);
}

function clientsOf(rows: readonly Row[], realms: readonly Row[], macs: RowMacs): readonly Client[] {
  const listed = Map.groupBy(realms, (row) => row.client_id);
  return rows.map((row) => clientOf(row, listed.get(row.client_id) ?? [], macs));
}

/** Returns false if the ID exists. */
export function* insertClient(client: Client, macs: RowMacs): Work<boolean> {
  const row = signedRow(client, macs);
  const isNew = (yield* execute(CLIENT_TEXTS.insert, ...Object.values(row))) === 1;
  if (isNew) yield* replaceRealms(client, macs);
  return isNew;
}

/** Returns false unless the stored revision is `expected`. */
export function* updateClient(client: Client, expected: Revision, macs: RowMacs): Work<boolean> {
  const values = valuesIn(signedRow(client, macs), clientTable.updated);
  const isUpdated = (yield* execute(CLIENT_TEXTS.update, ...values, client.clientId, expected)) === 1;
  if (isUpdated) yield* replaceRealms(client, macs);
  return isUpdated;
}

/** Returns false unless the client exists with the revision `expected`; the caller must then roll back. */
export function* removeClient(clientId: string, expected: Revision): Work<boolean> {
  yield* execute(CLIENT_TEXTS.clearRealms, clientId);
  yield* execute(CLIENT_TEXTS.removeUse, clientId);
  return (yield* execute(CLIENT_TEXTS.remove, clientId, expected)) === 1;
}

function* replaceRealms({ clientId, realms, revision }: Client, macs: RowMacs): Work<void> {
  yield* execute(CLIENT_TEXTS.clearRealms, clientId);
  if (realms === '*') return;
  for (const realm of realms) {
    const row = macs.signedRow(clientRealmTable, { clientId, realm }, revision);
    yield* execute(clientRealmTable.insert, ...Object.values(row));
  }
}

function signedRow(client: Client, macs: RowMacs): EncodedRow {
  return macs.signedRow(clientTable, {
    ...client,
    allRealms: client.realms === '*',
    previousDigest: client.previous?.digest,
    previousExpiresAt: client.previous?.expiresAt,
    implicit: JSON.stringify(describeImplicit(client)),
  });
}

/** Each realm has a row with its own MAC: it goes with the realm. */
function clientOf(row: Row, listed: readonly Row[], macs: RowMacs): Client {
  const { allRealms, previousDigest, previousExpiresAt, implicit, endUserAddress, ...client } =
    clientTable.read(row);
  const realms = listed.filter((each) => !macs.isRowForged(clientRealmTable, each, client.revision));
  const isForged = macs.isRowForged(clientTable, row);
  return Object.freeze({
    ...client,
    realms: allRealms ? '*' : new Set(realms.map(({ realm_id }) => realm_id as Uuid)),
    previous:
      previousDigest && previousExpiresAt !== undefined
        ? { digest: previousDigest, expiresAt: previousExpiresAt }
        : undefined,
    ...(isForged ? { isForged } : parseImplicit(JSON.parse(implicit))),
    ...(endUserAddress === undefined ? {} : { endUserAddress: endUserAddress as EndUserAddress }),
    ...(realms.length < listed.length ? { hasForgedRealms: true } : {}),
  });
}
