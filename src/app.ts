import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ensureClient } from './access/clients.ts';
import { openGrants } from './access/grant.ts';
import { type Keyring, openKeyring, proveKeyring } from './access/keyring.ts';
import { obtainMasterKey } from './access/master_key.ts';
import { ensureSigningKey } from './access/signing.ts';
import { openAccessCache } from './access/table.ts';
import { openTokens } from './access/token.ts';
import { masterKeySource, readSettingFile, readTls, type Settings } from './config.ts';
import { Refusal } from './domain/fault.ts';
import { type Ambient, parseUuid, type Uuid } from './domain/id.ts';
import { parseScopes } from './domain/principal.ts';
import { routesOf } from './http/routes.ts';
import { type Server, type ServerSettings, startServer } from './http/server.ts';
import type { Log } from './observe/log.ts';
import { type Engine, openEngine, reopenEngine } from './store/open.ts';

/** The release of this program, from its package. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;

/** A database and the keyring that opens its secrets: what every command works on. */
export interface Vault {
  readonly engine: Engine;
  readonly keyring: Keyring;
  /** The key file this opening made, if it made one. */
  readonly keyFileMade: string | undefined;
}

/**
 * Opens the database, brings its schema up, proves the master key and makes sure there is a signing key. However many
 * processes do so at once, they end with the same database. Throws Refusal with what to do.
 */
export async function openVault(settings: Settings, ambient: Ambient): Promise<Vault> {
  const engine = await openEngine(settings.database, settings.migrate, { version: VERSION, ambient });
  try {
    const hasProof = (await engine.access.keyChecks()).length > 0;
    const { key, made } = obtainMasterKey(masterKeySource(settings), hasProof, ambient);
    const keyring = openKeyring(key, ambient);
    await proveKeyring(keyring, engine.access, ambient);
    await ensureSigningKey(engine.access, keyring, ambient);
    return { engine, keyring, keyFileMade: made };
  } catch (error) {
    engine.close();
    throw error;
  }
}

/** Opens what another process has already made ready. */
export async function reopenVault(settings: Settings, ambient: Ambient): Promise<Vault> {
  const engine = await reopenEngine(settings.database);
  const { key } = obtainMasterKey(masterKeySource(settings), true, ambient);
  return { engine, keyring: openKeyring(key, ambient), keyFileMade: undefined };
}

const bootstrapClient = z.strictObject({
  client_id: z.string().regex(/^[A-Za-z0-9._~-]{1,64}$/, 'must be 1 to 64 letters, digits or . _ ~ -'),
  client_secret: z.string().min(32, 'must have at least 32 characters').max(255),
  name: z.string().min(1).max(255),
  scope: z.string(),
  realms: z.union([z.literal('*'), z.array(z.string())]).default('*'),
});

/** Makes the client of the bootstrap file exist as described. Throws Refusal that names what is wrong in the file. */
export async function ensureBootstrapClient(
  settings: Settings,
  vault: Vault,
  ambient: Ambient,
): Promise<void> {
  const path = settings.bootstrapClientFile;
  if (path === undefined) return;
  const described = parseBootstrapClient(path, readSettingFile('--bootstrap-client-file', path));
  const { client_id: clientId, client_secret: secret, name } = described;
  const scopes = parseScopes(described.scope);
  if (!scopes) throw new Refusal(`${path}: scope names a scope that does not exist`);
  const realms = described.realms === '*' ? '*' : new Set(described.realms.map((raw) => realmId(raw, path)));
  await ensureClient(vault.engine.access, { clientId, secret, name, scopes, realms }, ambient);
}

function parseBootstrapClient(path: string, text: string): z.output<typeof bootstrapClient> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Refusal(`${path} is not JSON`);
  }
  const parsed = bootstrapClient.safeParse(json);
  if (parsed.success) return parsed.data;
  const complaints = parsed.error.issues.map(
    ({ path: at, message }) => `${path}: ${at.join('.')} ${message}`,
  );
  throw new Refusal(complaints.join('\n'));
}

function realmId(raw: string, path: string): Uuid {
  const id = parseUuid(raw);
  if (!id) throw new Refusal(`${path}: realms holds what is no realm ID`);
  return id;
}

/** What a server listens with and logs. */
export function serverSettings(settings: Settings): ServerSettings {
  const { host, port, processes, corsOrigins, requestLogging } = settings;
  return { host, port, tls: readTls(settings), isShared: processes > 1, corsOrigins, requestLogging };
}

/** Serves a vault until the server is stopped. The base URL is the address itself unless the settings name one. */
export function serve(
  settings: Settings,
  { engine, keyring }: Vault,
  log: Log,
  ambient: Ambient,
): Promise<Server> {
  return startServer(serverSettings(settings), log, async (url) => {
    const baseUrl = settings.baseUrl ?? url;
    const access = openAccessCache(engine.access, ambient);
    const issuing = { issuer: baseUrl, lifetimeSeconds: settings.tokenLifetime };
    const tokens = openTokens(access, keyring, issuing, ambient);
    const grant = openGrants(access, tokens, ambient);
    return routesOf({ store: engine.records, access, tokens, grant, baseUrl, version: VERSION });
  });
}
