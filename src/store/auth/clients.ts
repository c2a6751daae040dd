import type { AuditEntry } from '../../domain/audit_entry.ts';
import type { Revision, Uuid } from '../../domain/id.ts';
import { describeImplicit, type ImplicitRights, parseImplicit } from '../../domain/implicit_rights.ts';
import type { EndUserAddress, Realms, Scopes } from '../../domain/principal.ts';
import { clientRealmTable, clientTable } from '../tables/installation.ts';
import { type EncodedRow, type StoredRow, valuesIn } from '../tables/table.ts';
import { all, execute, first, type Row, type Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import type { ChangeAccess } from './revoked_tokens.ts';
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

const SELECT_CLIENTS = `${clientTable.select} order by created_at, client_id`;
const SELECT_CLIENT = `${clientTable.select} where client_id = ?`;
const SELECT_AFTER = `${clientTable.select} where client_id > ? order by client_id limit ?`;
const SELECT_REALMS = `${clientRealmTable.select} order by client_id, realm_id`;
const SELECT_REALMS_OF_ONE = `${clientRealmTable.select} where client_id = ? order by realm_id`;
/** Parameters: the IDs after which and up to which. */
const SELECT_REALMS_AMONG = `${clientRealmTable.select} where client_id > ? and client_id <= ? order by client_id, realm_id`;
const INSERT = `${clientTable.insert} on conflict do nothing`;
const UPDATE = `${clientTable.update} where client_id = ? and revision = ?`;
const DELETE_REALMS = 'delete from client_realm where client_id = ?';
const DELETE_USE = 'delete from client_use where client_id = ?';
const DELETE = 'delete from client where client_id = ? and revision = ?';

/** Oldest first. */
export function* readClients(macs: RowMacs): Work<readonly Client[]> {
  const realms = yield* all(SELECT_REALMS);
  return clientsOf(yield* all(SELECT_CLIENTS), realms, macs);
}

export function openClients({ read }: Pick<Transactions, 'read'>, change: ChangeAccess, macs: RowMacs) {
  return {
    client: (clientId: string) =>
      read(function* () {
        const row = yield* first(SELECT_CLIENT, clientId);
        if (!row) return undefined;
        return clientOf(row, row.all_realms === 1 ? [] : yield* all(SELECT_REALMS_OF_ONE, clientId), macs);
      }),
    /** Clients ordered by identifier, after `after`, at most `limit`. */
    clientsAfter: (after: string, limit: number) =>
      read(function* () {
        const rows = yield* all(SELECT_AFTER, after, limit);
        const last = rows.at(-1);
        if (!last) return [];
        return clientsOf(rows, yield* all(SELECT_REALMS_AMONG, after, last.client_id as string), macs);
      }),
    /** Adds a client; false when its identifier is taken. */
    insertClient: (client: Client, auditEntry: AuditEntry) =>
      change(function* () {
        const isNew = (yield* execute(INSERT, ...Object.values(signedRow(client, macs)))) === 1;
        if (isNew) yield* replaceRealms(client, macs);
        return isNew;
      }, auditEntry),
    /** Replaces a client; false unless the stored revision is `expected`. */
    updateClient: (client: Client, expected: Revision, auditEntry: AuditEntry) =>
      change(function* () {
        const values = valuesIn(signedRow(client, macs), clientTable.updated);
        const isUpdated = (yield* execute(UPDATE, ...values, client.clientId, expected)) === 1;
        if (isUpdated) yield* replaceRealms(client, macs);
        return isUpdated;
      }, auditEntry),
    /** Removes a client; false unless it exists with the revision `expected`. Its audit entries stay. */
    removeClient: (clientId: string, expected: Revision, auditEntry: AuditEntry) =>
      change(function* () {
        yield* execute(DELETE_REALMS, clientId);
        yield* execute(DELETE_USE, clientId);
        return (yield* execute(DELETE, clientId, expected)) === 1;
      }, auditEntry),
  };
}

function clientsOf(rows: readonly Row[], realms: readonly Row[], macs: RowMacs): readonly Client[] {
  const listed = Map.groupBy(realms, (row) => row.client_id);
  return rows.map((row) => clientOf(row, listed.get(row.client_id) ?? [], macs));
}

function* replaceRealms({ clientId, realms, revision }: Client, macs: RowMacs): Work<void> {
  yield* execute(DELETE_REALMS, clientId);
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
