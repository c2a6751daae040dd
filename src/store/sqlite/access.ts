import type { Database } from 'bun:sqlite';
import type { AccessStore, AccessTable, Client, KeyCheck, SigningKey } from '../../access/port.ts';
import type { Revision, Uuid } from '../../domain/id.ts';
import type { Realms } from '../../domain/principal.ts';
import { readFrom } from './connection.ts';
import { sealedBy } from './sealed.ts';
import type { Snapshot } from './snapshot.ts';
import type { Outcome, Writer } from './writer.ts';

/** Clients, signing keys and the keyring's proofs in one SQLite file. Every write moves the table's version. */
export function openAccess(db: Database, snapshot: Snapshot, writer: Writer): AccessStore {
  const {
    instance,
    touch,
    selectClients,
    selectRealms,
    selectKeys,
    insertClient,
    updateClient,
    clearRealms,
    insertRealm,
    insertKey,
    withdrawKey,
    forgetKey,
    selectChecks,
    insertCheck,
  } = prepareAll(db);

  /** Several statements: `readFrom` gives them one moment where it shares a transaction, this one elsewhere. */
  const wholeTable = db.transaction((known: number | undefined): AccessTable | undefined => {
    const version = instance.get()?.access_version ?? 0;
    if (version === known) return undefined;
    const realms = Map.groupBy(selectRealms.all(), (row) => row.client_id);
    const clients = selectClients.all().map((row) => {
      const listed = realms.get(row.client_id)?.map(({ realm_id }) => realm_id) ?? [];
      return clientOf(row, row.all_realms === 1 ? '*' : new Set(listed));
    });
    const keyIds = selectChecks.all().map((row) => row.key_id);
    return { version, clients, signingKeys: selectKeys.all().map(keyOf), keyIds };
  });

  /** One piece of work that answers whether it changed anything, and moves the version if so. */
  function change(work: () => boolean): Promise<boolean> {
    return writer.write((): Outcome<boolean> => {
      const value = work();
      if (value) touch.run();
      return { value, keep: value };
    });
  }

  function keepRealms(client: Client): void {
    clearRealms.run(client.clientId);
    if (client.realms === '*') return;
    for (const realm of client.realms) insertRealm.run(client.clientId, realm);
  }

  const addKey = (key: SigningKey, onlyFirst: boolean): boolean =>
    insertKey.run(...keyColumnsOf(key), onlyFirst ? 1 : 0, key.privateSealed).changes === 1;

  return {
    table: (known) => readFrom(snapshot, () => wholeTable(known)),
    insertClient: (client) =>
      change(() => {
        const isNew = insertClient.run(...columnsOf(client)).changes === 1;
        if (isNew) keepRealms(client);
        return isNew;
      }),
    updateClient: (client, seen) =>
      change(() => {
        const isKept = updateClient.run(...columnsOf(client), seen).changes === 1;
        if (isKept) keepRealms(client);
        return isKept;
      }),
    insertSigningKey: (key, onlyFirst) => change(() => addKey(key, onlyFirst)),
    withdrawSigningKey: (kid, at, replacement) =>
      change(() => withdrawKey.run(at, kid).changes === 1 && (!replacement || addKey(replacement, false))),
    forgetPrivateHalves: async (kids) => {
      await change(() => kids.filter((kid) => forgetKey.run(kid).changes === 1).length > 0);
    },
    keyChecks: () =>
      readFrom(snapshot, () =>
        selectChecks.all().map((row): KeyCheck => ({ keyId: row.key_id, sealed: row.sealed })),
      ),
    insertKeyCheck: async (check, at) => {
      await change(() => insertCheck.run(check.keyId, check.sealed, at).changes === 1);
    },
    storeId: () => readFrom(snapshot, () => instance.get()?.store_id ?? ''),
  };
}

/** Every statement about access, prepared on one connection. */
function prepareAll(db: Database) {
  return {
    instance: db.prepare<{ store_id: string; access_version: number }, []>('select * from instance'),
    touch: db.prepare('update instance set access_version = access_version + 1'),
    selectClients: db.prepare<ClientRow, []>('select * from client order by created_at, client_id'),
    selectRealms: db.prepare<{ client_id: string; realm_id: Uuid }, []>('select * from client_realm'),
    selectKeys: db.prepare<KeyRow, []>('select * from signing_key order by created_at, kid'),
    insertClient: db.prepare(
      `insert or ignore into client (name, scopes, all_realms, disabled_at, secret_digest, previous_digest,
       previous_expires_at, created_at, updated_at, revision, client_id) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    updateClient: db.prepare(
      `update client set name = ?, scopes = ?, all_realms = ?, disabled_at = ?, secret_digest = ?,
       previous_digest = ?, previous_expires_at = ?, created_at = ?, updated_at = ?, revision = ?
     where client_id = ? and revision = ?`,
    ),
    clearRealms: db.prepare('delete from client_realm where client_id = ?'),
    insertRealm: db.prepare('insert into client_realm values (?, ?)'),
    insertKey: db.prepare(
      `insert into signing_key (kid, public_jwk, private_sealed, created_at, signs_from)
     select ?, ?, ?, ?, ? where (? = 0 or not exists (select 1 from signing_key))
       and exists (select 1 from keyring where key_id = ${sealedBy('?')})`,
    ),
    withdrawKey: db.prepare(
      `update signing_key set withdrawn_at = ?, private_sealed = x'' where kid = ? and withdrawn_at is null`,
    ),
    forgetKey: db.prepare(
      `update signing_key set private_sealed = x'' where kid = ? and private_sealed <> x''`,
    ),
    selectChecks: db.prepare<KeyCheckRow, []>('select key_id, sealed from keyring order by rowid'),
    insertCheck: db.prepare('insert into keyring select ?, ?, ? where not exists (select 1 from keyring)'),
  };
}

interface ClientRow {
  readonly client_id: string;
  readonly name: string;
  readonly scopes: string;
  readonly all_realms: number;
  readonly disabled_at: number | null;
  readonly secret_digest: Uint8Array;
  readonly previous_digest: Uint8Array | null;
  readonly previous_expires_at: number | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly revision: Revision;
}

interface KeyRow {
  readonly kid: string;
  readonly public_jwk: string;
  readonly private_sealed: Uint8Array;
  readonly created_at: number;
  readonly signs_from: number;
  readonly withdrawn_at: number | null;
}

interface KeyCheckRow {
  readonly key_id: string;
  readonly sealed: Uint8Array;
}

/** The values of a client's row, its identifier last, as both statements take them. */
function columnsOf(client: Client) {
  return [
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
    client.clientId,
  ] as const;
}

function clientOf(row: ClientRow, realms: Realms): Client {
  return Object.freeze({
    clientId: row.client_id,
    name: row.name,
    scopes: new Set(row.scopes.split(' ').filter(Boolean)),
    realms,
    disabledAt: row.disabled_at ?? undefined,
    secretDigest: row.secret_digest,
    previous:
      row.previous_digest === null || row.previous_expires_at === null
        ? undefined
        : { digest: row.previous_digest, expiresAt: row.previous_expires_at },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revision: row.revision,
  });
}

function keyColumnsOf({ kid, publicJwk, privateSealed, createdAt, signsFrom }: SigningKey) {
  return [kid, publicJwk, privateSealed, createdAt, signsFrom] as const;
}

function keyOf(row: KeyRow): SigningKey {
  return Object.freeze({
    kid: row.kid,
    publicJwk: row.public_jwk,
    privateSealed: row.private_sealed,
    createdAt: row.created_at,
    signsFrom: row.signs_from,
    withdrawnAt: row.withdrawn_at ?? undefined,
  });
}
