import type { MaybePromise } from '../directory/store.ts';
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

/** A key pair that signs access tokens. The private half is sealed by the keyring. */
export interface SigningKey {
  readonly kid: string;
  readonly publicJwk: string;
  readonly privateSealed: Uint8Array;
  readonly createdAt: number;
  /** It signs from here on, once every holder of a cached key set has seen it. */
  readonly signsFrom: number;
  /** Set when it was taken back: from then on nothing it signed is accepted. */
  readonly withdrawnAt: number | undefined;
}

/** All that decides about access, as of one moment. */
export interface AccessTable {
  /** Moves with every write to clients or signing keys. */
  readonly version: number;
  readonly clients: readonly Client[];
  readonly signingKeys: readonly SigningKey[];
}

/** A row of the keyring: the proof by which a master key is recognised, never the key. */
export interface KeyCheck {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

/** Where clients, signing keys and the keyring's proofs rest. */
export interface AccessStore {
  /** The whole table in one snapshot, or undefined while its version is still `known`. */
  table(known: number | undefined): MaybePromise<AccessTable | undefined>;
  /** Adds a client; answers false when its identifier is taken. */
  insertClient(client: Client): Promise<boolean>;
  /** Replaces a client; answers false unless the stored one still carries `seen`. */
  updateClient(client: Client, seen: Revision): Promise<boolean>;
  /** Adds a signing key; with `onlyFirst`, only where there is none. Answers whether it was added. */
  insertSigningKey(key: SigningKey, onlyFirst: boolean): Promise<boolean>;
  /** Takes a signing key back, and adds its replacement in the same commit; false when there is no such key in use. */
  withdrawSigningKey(kid: string, at: number, replacement: SigningKey): Promise<boolean>;
  keyChecks(): MaybePromise<readonly KeyCheck[]>;
  /** Adds the first proof of the keyring; a no-op when there is one. */
  insertKeyCheck(check: KeyCheck, at: number): Promise<void>;
  /** The identifier of this installation, minted when its database was made (STORE in contract 8, row 31). */
  storeId(): MaybePromise<string>;
}
