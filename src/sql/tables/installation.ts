import { table } from './table.ts';

/** The tables of the installation as a whole. Those that change rarely are on every node of a cluster. */

/** One row. */
export const instanceTable = table({
  name: 'instance',
  placement: 'every node',
  // `access_version` increases with every write to clients, signing keys, revoked tokens or key checks.
  columns: { singleton: 'number', store_id: 'text', access_version: 'long' },
  key: ['singleton'],
  hasRowId: true,
  check: 'singleton = 1',
});

/** Key check values, by which a master key is recognised. */
export const keyringTable = table({
  name: 'keyring',
  placement: 'every node',
  columns: { key_id: 'text', sealed: 'bytes', created_at: 'instant' },
  key: ['key_id'],
  hasRowId: true,
});

/** A key pair that signs access tokens. */
export const signingKeyTable = table({
  name: 'signing_key',
  placement: 'every node',
  columns: {
    kid: 'text',
    public_jwk: 'text',
    // Empty once it was deleted because the key never signs again.
    private_sealed: 'sealed',
    created_at: 'instant',
    // From this instant on every cached key set contains it.
    signs_from: 'instant',
    // Nothing that it signed is accepted any more. Without HMAC then.
    withdrawn_at: 'instant?',
    mac: 'mac?',
  },
  key: ['kid'],
  hasRowId: true,
});

export const clientTable = table({
  name: 'client',
  placement: 'every node',
  columns: {
    client_id: 'text',
    name: 'text',
    scopes: 'scopes',
    all_realms: 'flag',
    disabled_at: 'instant?',
    // Digests of its secret, and of the one before the last rotation.
    secret_digest: 'bytes',
    previous_digest: 'bytes?',
    previous_expires_at: 'instant?',
    created_at: 'instant',
    updated_at: 'instant',
    revision: 'revision',
    // What its ID alone gives, as JSON.
    implicit: 'text',
    // With the scope sign-in: whether its requests report the address of the end user.
    end_user_address: 'text?',
    mac: 'mac?',
  },
  key: ['client_id'],
  hasRowId: true,
});

/** The realms of a client with limited rights. The HMAC of a row covers the revision of the client as well. */
export const clientRealmTable = table({
  name: 'client_realm',
  placement: 'every node',
  columns: { client_id: 'text', realm_id: 'id', mac: 'mac?' },
  key: ['client_id', 'realm_id'],
  references: [{ columns: ['client_id'], table: 'client', target: ['client_id'] }],
});

/** The applied migrations. `serves_from`: the oldest schema whose programs each is compatible with. */
export const migrationTable = table({
  name: 'migration',
  placement: 'every node',
  columns: {
    version: 'number',
    name: 'text',
    applied_at: 'instant',
    program_version: 'text',
    serves_from: 'number',
  },
  key: ['version'],
  hasRowId: true,
  isOfDatabase: true,
});

/** Secrets of the installation. */
export const instanceSecretTable = table({
  name: 'instance_secret',
  placement: 'every node',
  columns: { name: 'text', sealed: 'sealed', created_at: 'instant' },
  key: ['name'],
  hasRowId: true,
});

/** Tokens that were revoked before they expired, and sessions of the console that ended. */
export const revokedTokenTable = table({
  name: 'revoked_token',
  placement: 'every node',
  columns: { jti: 'text', client_id: 'text', expires_at: 'instant' },
  key: ['jti'],
  indexes: { revoked_token_expiry: '(expires_at)' },
});

/** When each client last requested or used a token. */
export const clientUseTable = table({
  name: 'client_use',
  placement: 'one node',
  columns: { client_id: 'text', at: 'instant' },
  key: ['client_id'],
});

/** Links to the console that were not used yet: the digest of the one-time code of each, and the rights that it grants. */
export const consoleLinkTable = table({
  name: 'console_link',
  placement: 'one node',
  columns: {
    digest: 'text',
    label: 'text',
    scopes: 'scopes',
    realms: 'realms',
    created_at: 'instant',
    expires_at: 'instant',
    mac: 'mac?',
  },
  key: ['digest'],
  indexes: { console_link_expiry: '(expires_at)' },
});

/** Sessions of the console that were begun by a link or a provider, and have not ended. */
export const consoleSessionTable = table({
  name: 'console_session',
  placement: 'one node',
  columns: {
    session_id: 'text',
    actor: 'text',
    scopes: 'scopes',
    realms: 'realms',
    // Keyed digests of the rights of the issuer that the claims of a person met; empty for a link.
    rules: 'list',
    begun_at: 'instant',
    // When its current token was issued.
    renewed_at: 'instant',
    // It is not renewed beyond this instant.
    ends_at: 'instant',
    // The name of a person by a provider, encrypted as in the audit log.
    person: 'text?',
    mac: 'mac?',
  },
  key: ['session_id'],
  indexes: { console_session_renewal: '(renewed_at)' },
});

/** What one process at a time does for all. */
export const leaseTable = table({
  name: 'lease',
  placement: 'one node',
  columns: { name: 'text', holder: 'text', until: 'instant' },
  key: ['name'],
  isOfDatabase: true,
});
