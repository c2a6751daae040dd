import type { MaybePromise } from '../directory/store.ts';
import type { AuditEntry } from '../domain/audit_entry.ts';
import type { Revision } from '../domain/id.ts';
import type { Realms, Scopes } from '../domain/principal.ts';

/** Who may ask for tokens. Instants are milliseconds since the epoch; secrets are SHA-256 digests. */
export interface Client {
  readonly clientId: string;
  readonly name: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
  readonly disabledAt: number | undefined;
  readonly secretDigest: Uint8Array;
  /** The digest before the last rotation, and until when it is still accepted. */
  readonly previous: { readonly digest: Uint8Array; readonly expiresAt: number } | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly revision: Revision;
}

/** A key pair that signs access tokens. */
export interface SigningKey {
  readonly kid: string;
  readonly publicJwk: string;
  /** The private half, sealed by the keyring; empty once it was forgotten, because it never signs again. */
  readonly privateSealed: Uint8Array;
  readonly createdAt: number;
  /** It signs from here on, once every holder of a cached key set has seen it. */
  readonly signsFrom: number;
  /** Set when it was taken back: from then on nothing it signed is accepted. */
  readonly withdrawnAt: number | undefined;
}

/** A token that was taken back before it ended. */
export interface RevokedToken {
  readonly jti: string;
  readonly clientId: string;
  readonly expiresAt: number;
}

/** What a link to the console is worth to whoever follows it. */
export interface ConsoleLink {
  /** What it was called by whoever made it. */
  readonly label: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
  readonly expiresAt: number;
}

/** All that decides about access, as of one moment. */
export interface AuthState {
  /** Moves with every write to clients, signing keys, revoked tokens or the keyring's proofs. */
  readonly version: number;
  readonly clients: readonly Client[];
  /** Those that were not withdrawn. */
  readonly signingKeys: readonly SigningKey[];
  /** The identifiers of tokens that were taken back. */
  readonly revoked: ReadonlySet<string>;
  /** The master keys whose proof is stored, the newest last: one, or two while it is being changed. */
  readonly keyIds: readonly string[];
}

/** A row of the keyring: the proof by which a master key is recognised, never the key. */
export interface KeyCheck {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

/** Whether a key is to be the first one, or to follow others. */
export type SigningKeyCondition = 'first' | { readonly supersededBefore: number };

/** `unproven`: it was sealed by a master key that has no proof any more. `not needed`: there is a first one. */
export type SigningKeyInsertion = 'added' | 'not needed' | 'too many' | 'unproven';

/** Some signing keys, and all those in use as of the same moment: what a key does follows from the others. */
export interface SigningKeyPage {
  readonly keys: readonly SigningKey[];
  readonly inUse: readonly SigningKey[];
}

/** Where clients, signing keys and the keyring's proofs rest. */
export interface AuthStore {
  /** The whole table in one snapshot, or undefined while its version is still `known`. */
  state(known: number | undefined): MaybePromise<AuthState | undefined>;
  client(clientId: string): MaybePromise<Client | undefined>;
  /** Clients in the order of their identifiers, behind `after`, at most `limit`. */
  clientsAfter(after: string, limit: number): MaybePromise<readonly Client[]>;
  /** Adds a client; answers false when its identifier is taken. The act is logged in the same commit, as with all of these. */
  insertClient(client: Client, auditEntry: AuditEntry): Promise<boolean>;
  /** Replaces a client; answers false unless the stored one still carries `seen`. */
  updateClient(client: Client, seen: Revision, auditEntry: AuditEntry): Promise<boolean>;
  /** Removes a client; answers false unless it is there and carries `seen`. What the log tells of it stays. */
  removeClient(clientId: string, seen: Revision, auditEntry: AuditEntry): Promise<boolean>;
  /** When each client last asked for a token or used one, to the minute; those that never did are missing. */
  clientUsage(): MaybePromise<ReadonlyMap<string, number>>;
  /** Keeps that these clients were at work; a later instant stays. The version of the table stays as well. */
  recordClientUsage(clientIds: readonly string[], at: number): Promise<void>;
  /** Every signing key that there ever was, those that were withdrawn included. */
  signingKeys(): MaybePromise<readonly SigningKey[]>;
  signingKeysInUse(): MaybePromise<readonly SigningKey[]>;
  /** The key of this identifier, if there is one. */
  signingKey(kid: string): MaybePromise<SigningKeyPage>;
  /** Signing keys in the order of their identifiers, behind `after`, at most `limit`. */
  signingKeysAfter(after: string, limit: number): MaybePromise<SigningKeyPage>;
  /**
   * Adds a signing key: as the first one, where none is in use; else where fewer than `signingKeysMax` are. Of those that sign
   * from `outlivedAt` or before, an instant in milliseconds, one is.
   */
  insertSigningKey(
    key: SigningKey,
    place: SigningKeyCondition,
    auditEntry: AuditEntry,
  ): Promise<SigningKeyInsertion>;
  /**
   * Takes a signing key back, forgets its private half, and adds its replacement, if there is one, in the same commit;
   * false when there is no such key in use.
   */
  withdrawSigningKey(
    kid: string,
    replacement: SigningKey | undefined,
    auditEntry: AuditEntry,
  ): Promise<boolean>;
  /**
   * Keeps a token from being accepted until it has ended, and forgets those that have. Answers false where its client has
   * as many of them as the limit; a token that is known already is no other one, and no act.
   */
  revokeToken(token: RevokedToken, auditEntry: AuditEntry): Promise<boolean>;
  /** Keeps what a one-time code is worth, under its digest, and forgets those that came too late. */
  insertConsoleLink(digest: string, link: ConsoleLink, auditEntry: AuditEntry): Promise<void>;
  /** Whether a code is worth anything now. It claims nothing, and decides nothing. */
  hasConsoleLink(digest: string, now: number): MaybePromise<boolean>;
  /**
   * What a code is worth now, once: of all who take it, in however many processes, one gets it, and that is the act. Undefined
   * where it is none, was taken, came too late, or ends further ahead than any link that is made now.
   */
  redeemConsoleLink(
    digest: string,
    now: number,
    auditEntry: (link: ConsoleLink) => AuditEntry,
  ): Promise<ConsoleLink | undefined>;
  /** Removes codes that came too late; answers how many. */
  deleteExpiredConsoleLinks(now: number): Promise<number>;
  /** Empties the private halves of keys that never sign again. */
  deletePrivateKeys(kids: readonly string[]): Promise<void>;
  keyChecks(): MaybePromise<readonly KeyCheck[]>;
  /** Adds the first proof of the keyring; a no-op when there is one. */
  insertKeyCheck(check: KeyCheck, at: number): Promise<void>;
  /** A secret of the installation, sealed; undefined where there is none of that name. */
  secret(name: string): MaybePromise<Uint8Array | undefined>;
  /** Adds a secret; a no-op where there is one of that name. */
  insertSecret(name: string, sealed: Uint8Array, at: number): Promise<void>;
  /** The identifier of this installation, minted when its database was made (STORE in contract 8, row 31). */
  storeId(): MaybePromise<string>;
}

/** The one place a ciphertext belongs: it opens nowhere else. */
export interface SecretLocation {
  readonly table: string;
  readonly column: string;
  /** The nil UUID where the row belongs to no realm. */
  readonly realm: string;
  readonly id: string;
}

/** A stored secret: the one place it belongs to, and its ciphertext, which names the key it was sealed by. */
export interface SealedValue {
  readonly location: SecretLocation;
  readonly sealed: Uint8Array;
}

/** A ciphertext that takes the place of another one of the same secret. */
export interface ResealedValue extends SealedValue {
  /** What must still be there. */
  readonly seen: Uint8Array;
}

/** Every sealed value there is, and the proofs of the keys that seal them: what changing the master key needs. */
export interface SealedStore {
  /**
   * Sealed values in an order of their own, behind `after`, at most `limit`; with `notBy`, only those that name
   * another key.
   */
  values(
    exceptKeyId: string | undefined,
    after: SecretLocation | undefined,
    limit: number,
  ): MaybePromise<readonly SealedValue[]>;
  /** Replaces values that are still what was seen, in one commit. Their records stay as they are for everybody. */
  replace(values: readonly ResealedValue[]): Promise<void>;
  /** Adds the proof of a second key. Answers false where a third would be: one change at a time. */
  addKeyCheck(check: KeyCheck, at: number): Promise<boolean>;
  /**
   * Removes the proofs of all keys but this one, in the same commit that finds no value sealed by another key. Answers
   * false where there is one.
   */
  retireOtherKeys(keyId: string, auditEntry: AuditEntry): Promise<boolean>;
}
