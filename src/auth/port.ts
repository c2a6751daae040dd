import type { MaybePromise } from '../directory/store.ts';
import type { AuditEntry } from '../domain/audit_entry.ts';
import type { Revision, Uuid } from '../domain/id.ts';
import type { ImplicitRights } from '../domain/implicit_rights.ts';
import type { EndUserAddress, Realms, Scopes } from '../domain/principal.ts';

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

/** A key pair that signs access tokens. */
export interface SigningKey {
  readonly kid: string;
  readonly publicJwk: string;
  /** The private key, sealed by the keyring; empty once it was deleted because the key never signs again. */
  readonly privateSealed: Uint8Array;
  readonly createdAt: number;
  /** It signs from this instant on, when every cached key set contains it. */
  readonly signsFrom: number;
  /** Set when it was withdrawn: nothing it signed is accepted any more. */
  readonly withdrawnAt: number | undefined;
  /** Its row was not written by the service: it neither signs nor verifies. */
  readonly isForged?: boolean;
}

/** A token that was revoked before it expired, by its identifier. */
export interface RevokedToken {
  readonly jti: string;
  readonly clientId: string;
  readonly expiresAt: number;
}

/** A session of the console that ends, and when the last of its tokens expires. */
export interface EndedSession {
  readonly sessionId: string;
  readonly actor: string;
  readonly expiresAt: number;
}

/** The rights that a console link grants to the person who follows it. */
export interface ConsoleLink {
  /** The label given by its creator. */
  readonly label: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
  readonly expiresAt: number;
}

/** A session of the console that was begun by a link or a provider. Instants are milliseconds since the epoch. */
export interface StoredSession {
  readonly sessionId: Uuid;
  /** The actor in audit entries. */
  readonly actor: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** Keyed digests of the rights of the issuer that the claims of a person met; empty for a link. */
  readonly rules: readonly string[];
  readonly begunAt: number;
  /** When its current token was issued. */
  readonly renewedAt: number;
  /** It is not renewed beyond this instant. */
  readonly endsAt: number;
  /** Its row was not written by the service: it is not honoured, and can only be ended. */
  readonly isForged?: boolean;
}

/** A session that begins, with its audit entry. */
export interface BegunSession {
  readonly session: StoredSession;
  readonly auditEntry: AuditEntry;
}

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
export interface KeyCheck {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

/** Computes the MACs of rows. */
export interface RowKeys {
  rowMac(row: string): Uint8Array;
}

/** A row whose MAC is wrong, or that has none. */
export interface ForgedRow {
  readonly table: string;
  readonly realm?: string;
  readonly id: string;
}

/**
 * Yields every forged row of clients, their realms, signing keys, webhook targets, console links, console sessions and password
 * hashes.
 */
export type ForgedRows = () => AsyncGenerator<ForgedRow>;

/** Whether a key is inserted only as the first one, or as a successor. */
export type SigningKeyCondition = 'first' | { readonly supersededBefore: number };

/** `unproven`: sealed by a master key that has no key check any more. `not needed`: a first key exists. */
export type SigningKeyInsertion = 'added' | 'not needed' | 'too many' | 'unproven';

/**
 * A page of signing keys, and all keys in use at the same moment: the state of a key depends on the others.
 */
export interface SigningKeyPage {
  readonly keys: readonly SigningKey[];
  readonly inUse: readonly SigningKey[];
}

/**
 * Stores clients, signing keys, revoked tokens, console links and sessions, key checks and sealed secrets of the
 * installation.
 */
export interface AuthStore {
  /** The whole state in one snapshot, or undefined while its version is still `known`. */
  state(known: number | undefined): MaybePromise<AuthState | undefined>;
  client(clientId: string): MaybePromise<Client | undefined>;
  /** Clients ordered by identifier, after `after`, at most `limit`. */
  clientsAfter(after: string, limit: number): MaybePromise<readonly Client[]>;
  /**
   * Adds a client; false when its identifier is taken. Here as below, the audit entry is written in the same
   * commit.
   */
  insertClient(client: Client, auditEntry: AuditEntry): Promise<boolean>;
  /** Replaces a client; false unless the stored revision is `seen`. */
  updateClient(client: Client, seen: Revision, auditEntry: AuditEntry): Promise<boolean>;
  /** Removes a client; false unless it exists with the revision `seen`. Its audit entries stay. */
  removeClient(clientId: string, seen: Revision, auditEntry: AuditEntry): Promise<boolean>;
  /** When each client last requested or used a token, to the minute; clients that never did are absent. */
  clientUsage(): MaybePromise<ReadonlyMap<string, number>>;
  /**
   * Records that these clients were active at `at`; never moves an instant back. The version of the state
   * stays.
   */
  recordClientUsage(clientIds: readonly string[], at: number): Promise<void>;
  /** Every signing key, withdrawn ones included. */
  signingKeys(): MaybePromise<readonly SigningKey[]>;
  signingKeysInUse(): MaybePromise<readonly SigningKey[]>;
  /** The key with this identifier, if it exists. */
  signingKey(kid: string): MaybePromise<SigningKeyPage>;
  /** Signing keys ordered by identifier, after `after`, at most `limit`. */
  signingKeysAfter(after: string, limit: number): MaybePromise<SigningKeyPage>;
  /**
   * Adds a signing key: as the first one if none is in use, else if fewer than `signingKeysMax` count. All
   * keys that sign from `supersededBefore` (milliseconds since the epoch) or earlier count as one.
   */
  insertSigningKey(
    key: SigningKey,
    place: SigningKeyCondition,
    auditEntry: AuditEntry,
  ): Promise<SigningKeyInsertion>;
  /**
   * Withdraws a signing key, deletes its private key, adds its replacement and deletes all console sessions in one
   * commit; false if it is not in use.
   */
  withdrawSigningKey(
    kid: string,
    replacement: SigningKey | undefined,
    auditEntry: AuditEntry,
  ): Promise<boolean>;
  /**
   * Revokes a token until it expires, and deletes revocations that have expired. Returns false at the limit
   * of revoked tokens per client. Revoking a token again writes nothing.
   */
  revokeToken(token: RevokedToken, auditEntry: AuditEntry): Promise<boolean>;
  /** Stores the rights of a one-time code under its digest, and deletes expired codes. */
  insertConsoleLink(digest: string, link: ConsoleLink, auditEntry: AuditEntry): Promise<void>;
  /** Whether a code is valid now, without redeeming it. `forged`: its row was not written by the service. */
  consoleLinkState(digest: string, now: number): MaybePromise<'valid' | 'forged' | undefined>;
  /**
   * Redeems a code: exactly one of all concurrent callers begins a session with it. Undefined if the code is unknown,
   * used or expired, or expires later than any link created now could.
   */
  redeemConsoleLink(
    digest: string,
    now: number,
    begin: (link: ConsoleLink) => BegunSession,
  ): Promise<StoredSession | undefined>;
  insertConsoleSession(begun: BegunSession): Promise<void>;
  /** Sessions that have not ended, and all forged ones, oldest first. */
  consoleSessions(now: number): MaybePromise<readonly StoredSession[]>;
  /**
   * Replaces a session by what `renew` returns; undefined if it has ended, or `renew` returns undefined: then it stays as
   * it is. `forged`: its row was not written by the service.
   */
  renewConsoleSession(
    sessionId: string,
    now: number,
    renew: (session: StoredSession) => StoredSession | undefined,
  ): Promise<StoredSession | 'forged' | undefined>;
  /** Deletes a session and revokes its tokens. Ending a session again writes no audit entry. */
  endConsoleSession(session: EndedSession, auditEntry: AuditEntry): Promise<void>;
  /** Deletes expired codes and sessions; returns their number. */
  deleteExpiredSignIns(now: number): Promise<number>;
  /** Deletes the private keys of signing keys that never sign again. */
  deletePrivateKeys(kids: readonly string[]): Promise<void>;
  keyChecks(): MaybePromise<readonly KeyCheck[]>;
  /** Adds the first key check; a no-op if there is one. */
  insertKeyCheck(check: KeyCheck, at: number): Promise<void>;
  /** A sealed secret of the installation; undefined if there is none of that name. */
  secret(name: string): MaybePromise<Uint8Array | undefined>;
  /**
   * Adds the secret of the log. A no-op if the log has a secret. Resolves to `log exists` if it was removed from a log.
   */
  insertLogSecret(name: string, sealed: Uint8Array, at: number): Promise<'log exists' | 'done'>;
  /** The identifier of this installation, generated with its database (docs/wire.md#realms). */
  storeId(): MaybePromise<string>;
}

/** The location that a ciphertext is bound to: it decrypts nowhere else. */
export interface SecretLocation {
  readonly table: string;
  readonly column: string;
  /** The nil UUID where the row belongs to no realm. */
  readonly realm: string;
  readonly id: string;
}

/** A stored secret: its location, and its ciphertext, which names the key that sealed it. */
export interface SealedValue {
  readonly location: SecretLocation;
  readonly sealed: Uint8Array;
}

/** A ciphertext that replaces another one of the same secret. */
export interface ResealedValue extends SealedValue {
  /** The ciphertext it replaces; it must still be stored. */
  readonly seen: Uint8Array;
}

/**
 * All sealed values and the checks of the keys that sealed them, as a change of the master key needs them.
 */
export interface SealedStore {
  /**
   * Sealed values in a stable order, after `after`, at most `limit`; with `exceptKeyId`, only those of other
   * keys.
   */
  values(
    exceptKeyId: string | undefined,
    after: SecretLocation | undefined,
    limit: number,
  ): MaybePromise<readonly SealedValue[]>;
  /** Replaces the values that are still `seen`, in one commit. Records and their revisions do not change. */
  replace(values: readonly ResealedValue[]): Promise<void>;
  /** Adds the check of a second key. Returns false if there are two: one change at a time. */
  addKeyCheck(check: KeyCheck, at: number): Promise<boolean>;
  /**
   * Removes the checks of all other keys, in the commit that finds no value sealed by them. Returns false if
   * there is one.
   */
  retireOtherKeys(keyId: string, auditEntry: AuditEntry): Promise<boolean>;
}
