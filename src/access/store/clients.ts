import type { RowMacs } from '../../log/store/row_macs.ts';
import type { Uuid } from '../../model/id.ts';
import { describeImplicit, type ImplicitRights, parseImplicit } from '../../model/implicit_rights.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import type { LoggedChange } from '../../model/managed.ts';
import type { EndUserAddress, Realms, Scopes } from '../../model/principal.ts';
import { clientRealmTable, clientTable } from '../../sql/tables/installation.ts';
import { type EncodedRow, type StoredRow, valuesIn } from '../../sql/tables/table.ts';
import { all, execute, first, type Row, type Work } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import { type ChangeAccess, TOUCH_ACCESS } from './access_version.ts';

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
const UPDATE = `${clientTable.update} where client_id = ?`;
const DELETE_REALMS = 'delete from client_realm where client_id = ?';
const DELETE_USE = 'delete from client_use where client_id = ?';
const DELETE = 'delete from client where client_id = ?';

/** Oldest first. */
export function* readClients(macs: RowMacs): Work<readonly Client[]> {
  const realms = yield* all(SELECT_REALMS);
  return clientsOf(yield* all(SELECT_CLIENTS), realms, macs);
}

export function openClients(
  { read, write }: Pick<Transactions, 'read' | 'write'>,
  change: ChangeAccess,
  macs: RowMacs,
) {
  function* find(clientId: string): Work<Client | undefined> {
    const row = yield* first(SELECT_CLIENT, clientId);
    if (!row) return undefined;
    return clientOf(row, row.all_realms === 1 ? [] : yield* all(SELECT_REALMS_OF_ONE, clientId), macs);
  }

  return {
    client: (clientId: string) => read(() => find(clientId)),
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
    /** Replaces a client by what `edit` makes of it; returns it as it then is, or undefined if there is none. */
    changeClient: (clientId: string, edit: (found: Client) => LoggedChange<Client> | undefined) =>
      write('instance', function* () {
        const found = yield* find(clientId);
        const changed = found && edit(found);
        if (!changed) return { value: found, keep: false };
        const { after, auditEntry } = changed;
        yield* execute(UPDATE, ...valuesIn(signedRow(after, macs), clientTable.updated), clientId);
        yield* replaceRealms(after, macs);
        yield* execute(TOUCH_ACCESS);
        return { value: after, keep: true, auditEntries: [auditEntry] };
      }),
    /** Removes a client; false if there is none. `entryOf` may throw to keep it. Its audit entries stay. */
    removeClient: (clientId: string, entryOf: (found: Client) => AuditEntry) =>
      write('instance', function* () {
        const found = yield* find(clientId);
        if (!found) return { value: false, keep: false };
        const auditEntry = entryOf(found);
        for (const text of [DELETE_REALMS, DELETE_USE, DELETE]) yield* execute(text, clientId);
        yield* execute(TOUCH_ACCESS);
        return { value: true, keep: true, auditEntries: [auditEntry] };
      }),
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
