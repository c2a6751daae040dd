import type { RowMacs } from '../../log/store/row_macs.ts';
import { Fault } from '../../model/fault.ts';
import { NIL_UUID } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import { ciphertextKeyId } from '../../model/text/ciphertext.ts';
import {
  instanceSecretTable,
  instanceTable,
  keyringTable,
  signingKeyTable,
} from '../../sql/tables/installation.ts';
import type { StoredRow } from '../../sql/tables/table.ts';
import type { Long, Row, Work } from '../../sql/transaction_work.ts';
import { all, execute, executeAll, first } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import { openChanges } from './access_version.ts';
import { type Client, openClients, readClients } from './clients.ts';
import { ALL_REVOKED, type RevokedToken, revokeToken } from './revoked_tokens.ts';
import { DELETE_ALL_SESSIONS, openSignIns } from './sign_ins.ts';

/** A key pair that signs access tokens. */
export interface SigningKey extends StoredRow<typeof signingKeyTable> {
  /** Its row was not written by the service: it neither signs nor verifies. */
  readonly isForged?: boolean;
}

/** A signing key to add, which was never withdrawn. */
export type NewSigningKey = Omit<SigningKey, 'withdrawnAt' | 'isForged'> & { readonly withdrawnAt?: never };

/** Whether a key is inserted only as the first one, or as a successor. */
export type SigningKeyCondition = 'first' | { readonly supersededBefore: number };

/** `unproven`: sealed by a master key that has no key check any more. `not needed`: a first key exists. */
export type SigningKeyInsertion = 'added' | 'not needed' | 'too many' | 'unproven';

/** All stored data that authentication and authorization depend on, as of one moment. */
export interface AuthState {
  /** Increases with every write to clients, signing keys, revoked tokens or key checks. */
  readonly version: number;
  readonly clients: readonly Client[];
  /** Keys that were not withdrawn. */
  readonly signingKeys: readonly SigningKey[];
  /** The identifiers (`jti`) of revoked tokens, and those (`sid`) of ended sessions. */
  readonly revoked: ReadonlySet<string>;
  /** The master keys with a stored key check, newest last: one, or two while the key is being changed. */
  readonly keyIds: readonly string[];
}

/** A key check value, by which a master key is recognised; never the key itself. */
export type KeyCheck = Pick<StoredRow<typeof keyringTable>, 'keyId' | 'sealed'>;

const SELECT_KEYS = {
  all: `${signingKeyTable.select} order by created_at, kid`,
  inUse: `${signingKeyTable.select} where withdrawn_at is null order by created_at, kid`,
};
const SECRET_NAMES = 'select name from instance_secret where substr(name, 1, ?) = ?';
const USES = 'select client_id, at from client_use';
/** Inserts nothing for a client that was deleted meanwhile. */
const SAVE_USE = `insert into client_use (client_id, at) select client_id, ? from client where client_id = ?
  on conflict (client_id) do update set at = excluded.at where client_use.at < excluded.at`;
const WITHDRAW_KEY =
  'update signing_key set withdrawn_at = ?, private_sealed = ?, mac = null where kid = ? and withdrawn_at is null';
const DELETE_PRIVATE_KEY = 'update signing_key set private_sealed = ? where kid = ? and private_sealed <> ?';
const SECRET = 'select sealed from instance_secret where name = ?';
/** The log of the installation begins when it has a secret. */
const ANY_ACT = `select 1 from act where log_id = '${NIL_UUID}' limit 1`;
const CHECKS = `${keyringTable.select} order by created_at, key_id`;
const ANY_CHECK = 'select 1 from keyring limit 1';
export const IS_KEY_KNOWN = 'select 1 from keyring where key_id = ?';

/** The value of a deleted private key. */
const DELETED_KEY = new Uint8Array();

/**
 * Stores clients, signing keys, revoked tokens, console links and sessions, key checks and sealed secrets of the
 * installation. The audit entry of a write is in the same commit. `read` must not wait for tables that change often, such as
 * the use of clients.
 */
export function openAuthStore({ read: readAny, write }: Transactions, macs: RowMacs, read = readAny) {
  const change = openChanges(write);
  return {
    /** The whole state in one snapshot, or undefined while its version is still `known`. */
    state: (known: number | undefined) => read(() => readAccessTable(known, macs)),
    ...openClients({ read, write }, change, macs),
    ...openSignIns({ read: readAny, write }, macs),
    /** Every signing key, withdrawn ones included. */
    signingKeys: () => read(() => keysOf(macs, SELECT_KEYS.all)),
    signingKeysInUse: () => read(() => keysOf(macs, SELECT_KEYS.inUse)),
    /**
     * Adds a signing key: as the first one if none is in use, else if fewer than `signingKeysMax` count. All
     * keys that sign from `supersededBefore` (milliseconds since the epoch) or earlier count as one.
     */
    insertSigningKey: (key: NewSigningKey, condition: SigningKeyCondition, auditEntry: AuditEntry) =>
      change(
        () => insertKey(key, condition, macs),
        auditEntry,
        (outcome) => outcome === 'added',
      ),
    /** When each client last requested or used a token, to the minute; clients that never did are absent. */
    clientUsage: () =>
      readAny(function* () {
        const rows = yield* all<{ readonly client_id: string; readonly at: Long }>(USES);
        return new Map(rows.map(({ client_id, at }) => [client_id, Number(at)]));
      }),
    /** Records that these clients were active at `at`; never moves an instant back. The version of the state stays. */
    recordClientUsage: (clientIds: readonly string[], at: number) =>
      // In one order, so that two processes do not wait for each other.
      write<void>([], function* () {
        yield* executeAll([...clientIds].sort().map((id) => ({ text: SAVE_USE, values: [at, id] })));
        return { value: undefined, keep: true, rows: clientIds.length };
      }),
    /**
     * Withdraws a signing key, deletes its private key, adds its replacement and deletes all console sessions in one
     * commit; false if it is not in use.
     */
    withdrawSigningKey: (kid: string, replacement: NewSigningKey | undefined, auditEntry: AuditEntry) =>
      change(function* () {
        if ((yield* execute(WITHDRAW_KEY, auditEntry.at, DELETED_KEY, kid)) !== 1) return false;
        // With the key, a token of any session could be forged and renewed: its new token is signed by another key.
        yield* execute(DELETE_ALL_SESSIONS);
        return !replacement || (yield* addKey(replacement, macs));
      }, auditEntry),
    /**
     * Revokes a token until it expires, and deletes revocations that have expired. Returns `too many` at the limit
     * of revoked tokens per client. Revoking a token again writes nothing.
     */
    revokeToken: (token: RevokedToken, auditEntry: AuditEntry) =>
      change(
        () => revokeToken(token, auditEntry.at, LIMITS.revokedTokensPerClientMax),
        auditEntry,
        (outcome) => outcome === 'new',
      ),
    /** Deletes the private keys of signing keys that never sign again. */
    async deletePrivateKeys(kids: readonly string[]): Promise<void> {
      await change(function* () {
        let deleted = 0;
        for (const kid of kids) deleted += yield* execute(DELETE_PRIVATE_KEY, DELETED_KEY, kid, DELETED_KEY);
        return deleted > 0;
      });
    },
    /** Oldest first. */
    keyChecks: () => read(keyChecks),
    /** Adds the first key check; a no-op if there is one. */
    insertKeyCheck: (check: KeyCheck, createdAt: number) =>
      change(function* () {
        if (yield* first(ANY_CHECK)) return false;
        return (yield* execute(keyringTable.insert, ...keyringTable.values({ ...check, createdAt }))) === 1;
      }),
    /** A sealed secret of the installation; undefined if there is none of that name. */
    secret: (name: string) =>
      read(function* () {
        return (yield* first<{ readonly sealed: Uint8Array }>(SECRET, name))?.sealed;
      }),
    /** Adds the secret of the log. A no-op if the log has a secret. Resolves to `log exists` if it was removed from a log. */
    insertLogSecret: (name: string, sealed: Uint8Array, at: number) =>
      write<'log exists' | 'done'>('instance', function* () {
        if (yield* first(SECRET, name)) return { value: 'done', keep: false };
        if (yield* first(ANY_ACT)) return { value: 'log exists', keep: false };
        if (!(yield* first(IS_KEY_KNOWN, ciphertextKeyId(sealed)))) return { value: 'done', keep: false };
        yield* execute(instanceSecretTable.insert, name, sealed, at);
        return { value: 'done', keep: true };
      }),
    /** The names of the secrets that begin with a text. */
    secretNames: (prefix: string) =>
      read(function* () {
        const rows = yield* all<{ readonly name: string }>(SECRET_NAMES, prefix.length, prefix);
        return rows.map(({ name }) => name);
      }),
    /** Adds a secret. A no-op if there is one of that name. Rejects with Fault `unavailable` if its key is no longer in use. */
    insertSecret: (name: string, sealed: Uint8Array, at: number) =>
      write<void>('instance', function* () {
        if (yield* first(SECRET, name)) return { value: undefined, keep: false };
        yield* assertKeyIsKnown(sealed);
        yield* execute(instanceSecretTable.insert, name, sealed, at);
        return { value: undefined, keep: true };
      }),
    /** The identifier of this installation, generated with its database (docs/wire.md#realms). */
    storeId: () =>
      read(function* () {
        return (yield* instance())?.storeId ?? '';
      }),
  };
}

export type AuthStore = ReturnType<typeof openAuthStore>;

function* instance(): Work<StoredRow<typeof instanceTable> | undefined> {
  const row = yield* first(instanceTable.select);
  return row && instanceTable.read(row);
}

function* keyChecks(): Work<readonly KeyCheck[]> {
  return (yield* all(CHECKS)).map(keyringTable.read);
}

function* readAccessTable(known: number | undefined, macs: RowMacs): Work<AuthState | undefined> {
  const version = (yield* instance())?.accessVersion ?? 0;
  if (version === known) return undefined;
  const clients = yield* readClients(macs);
  const keyIds = (yield* keyChecks()).map(({ keyId }) => keyId);
  const signingKeys = yield* keysOf(macs, SELECT_KEYS.inUse);
  const revoked = yield* all<{ readonly jti: string }>(ALL_REVOKED);
  return { version, clients, signingKeys, revoked: new Set(revoked.map(({ jti }) => jti)), keyIds };
}

function* keysOf(macs: RowMacs, text: string): Work<readonly SigningKey[]> {
  return (yield* all(text)).map((row) => keyOf(row, macs));
}

function* insertKey(
  key: NewSigningKey,
  condition: SigningKeyCondition,
  macs: RowMacs,
): Work<SigningKeyInsertion> {
  const inUse = (yield* all(SELECT_KEYS.inUse)).map(signingKeyTable.read);
  if (condition === 'first') {
    if (inUse.length > 0) return 'not needed';
  } else {
    const later = inUse.filter(({ signsFrom }) => signsFrom > condition.supersededBefore);
    // A key stays in the key set until its successor has signed for some time: the newest older key is still in it.
    const older = later.length < inUse.length ? 1 : 0;
    if (later.length + older >= LIMITS.signingKeysMax) return 'too many';
  }
  return (yield* addKey(key, macs)) ? 'added' : 'unproven';
}

/**
 * Rejects a secret that was sealed by a key without a key check: a process that missed the end of a master key change
 * would store a secret that cannot be decrypted. That end waits for the clocks of all realms and of the installation, and
 * this write holds one of these locks.
 */
export function* assertKeyIsKnown(sealed: unknown): Work<void> {
  if (!(sealed instanceof Uint8Array) || (yield* first(IS_KEY_KNOWN, ciphertextKeyId(sealed)))) return;
  // A database without any key check has never had a master key.
  if (yield* first(ANY_CHECK)) {
    throw new Fault('unavailable', [], new Error('the master key was changed while this process ran'));
  }
}

/** Returns false for a key that was sealed by a master key without a key check. */
function* addKey(key: NewSigningKey, macs: RowMacs): Work<boolean> {
  if (!(yield* first(IS_KEY_KNOWN, ciphertextKeyId(key.privateSealed)))) return false;
  return (
    (yield* execute(signingKeyTable.insert, ...Object.values(macs.signedRow(signingKeyTable, key)))) === 1
  );
}

/** A withdrawn key has no MAC. */
function keyOf(row: Row, macs: RowMacs): SigningKey {
  const key = signingKeyTable.read(row);
  const isForged = key.withdrawnAt === undefined && macs.isRowForged(signingKeyTable, row);
  return Object.freeze({ ...key, ...(isForged ? { isForged } : {}) });
}
