import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openGrants } from './access/grant.ts';
import { proveAll, proveKeyring } from './access/keyring.ts';
import { type LiveKeyring, openLiveKeyring } from './access/live_keyring.ts';
import {
  type MasterKeySource,
  obtainMasterKeys,
  obtainNextKey,
  proveKeyGiven,
  replaceKeyFile,
  rereadMasterKeys,
} from './access/master_key.ts';
import { changeMasterKey, type MasterKeyChanged } from './access/rewrap.ts';
import { ensureSigningKey } from './access/signing.ts';
import { openAdministration } from './administration.ts';
import type { LogKeys } from './audit/keys.ts';
import { findLogKeys, keepLog } from './audit/root.ts';
import { openAuthority, readIssuers } from './authority.ts';
import { besideCommand, openSearch } from './beside.ts';
import { type Children, openChildren } from './children.ts';
import { masterKeySource, passwordCost, readTls, type Settings } from './config.ts';
import { openCounting } from './counting.ts';
import { openDirectory } from './directory/directory.ts';
import type { Makers } from './directory/finishing.ts';
import type { Store } from './directory/store.ts';
import { startSweeping } from './directory/sweeping.ts';
import { Refusal } from './domain/fault.ts';
import type { Ambient } from './domain/id.ts';
import { LIMITS } from './domain/limits.ts';
import { consoleRoutes } from './http/console.ts';
import { openOnce } from './http/idempotency.ts';
import { metricsRoutes } from './http/metrics.ts';
import { openRateLimits, type RateSettings } from './http/rate_limits.ts';
import type { Route } from './http/router.ts';
import { routesOf } from './http/routes.ts';
import { type Server, type ServerSettings, startServer } from './http/server.ts';
import { accessMeasure, checkpointMeasure, measuresOf, tellingMeasures } from './measures.ts';
import type { Snapshot } from './observe/family.ts';
import type { Log } from './observe/log.ts';
import { openMetrics } from './observe/metrics.ts';
import { openLearner } from './outbound/learner.ts';
import { openHasher } from './passwords/hasher.ts';
import {
  type CountQuestion,
  type Engine,
  fileOf,
  inspectEngine,
  nameOf,
  openEngine,
  refusalOf,
  reopenEngine,
} from './store/open.ts';
import { startTelling, type Telling, webhookRule } from './telling.ts';
import { tellCheckpoints, witnessesOf } from './witnesses.ts';

export { readIssuers } from './authority.ts';
export { besideCommand, openSearch } from './beside.ts';
export type { Archiver, Errand } from './store/backups/archiver.ts';
export { type BackedUp, backUp, type Target } from './store/backups/backup.ts';
export { type OnBytes, type Restored, type RestoreOrder, restore } from './store/backups/restoration.ts';
export { type Compared, type CopyWatch, copyDatabase, isSame } from './store/copying/open.ts';
export { fileOf, isInMemory, nameOf, refusalOf } from './store/open.ts';
export { pendingMigrations } from './store/pending.ts';
export { citusSql } from './store/postgres/citus.ts';

/** The release of this program, from its package. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;

/** Where what the console is made of was built. */
const CONSOLE_FOLDER = fileURLToPath(new URL('../dist/console', import.meta.url));

/** A database and the keyring that opens its secrets: what every command works on. */
export interface Vault {
  readonly engine: Engine;
  readonly keyring: LiveKeyring;
  readonly logKeys: LogKeys;
  /** The key file this opening made, if it made one. */
  readonly keyFileMade: string | undefined;
}

/**
 * Opens the database, brings its schema up, proves the master key and makes sure there is a signing key. However many
 * processes do so at once, they end with the same database. Throws Refusal with what to do.
 */
export async function openVault(settings: Settings, ambient: Ambient): Promise<Vault> {
  const source = masterKeySource(settings);
  proveKeyGiven(source);
  const engine = await openDatabase(settings, ambient);
  try {
    const hasProof = (await engine.access.keyChecks()).length > 0;
    const { keys, made } = obtainMasterKeys(source, hasProof, ambient);
    const keyring = openLiveKeyring(keys, () => rereadMasterKeys(source), ambient);
    await proveKeyring(keyring, engine.access, ambient);
    const logKeys = await keepLog(engine, keyring, ambient);
    await ensureSigningKey(engine.access, keyring, ambient);
    return { engine, keyring, logKeys, keyFileMade: made };
  } catch (error) {
    await engine.close();
    throw refusalOf(error, nameOf(settings.database));
  }
}

/** Opens a database without its secrets. */
export function openDatabase(settings: Settings, ambient: Ambient): Promise<Engine> {
  const { database, migrate, migrateDatabase } = settings;
  return openEngine(database, migrate, { version: VERSION, ambient }, migrateDatabase);
}

/** Opens what another process has already made ready. */
export async function reopenVault(settings: Settings, ambient: Ambient): Promise<Vault> {
  const engine = await reopenEngine(settings.database, { version: VERSION, ambient });
  try {
    const source = masterKeySource(settings);
    const { keys } = obtainMasterKeys(source, true, ambient);
    const keyring = openLiveKeyring(keys, () => rereadMasterKeys(source), ambient);
    keyring.follow((await engine.access.keyChecks()).map(({ keyId }) => keyId));
    const logKeys = await keepLog(engine, keyring, ambient);
    return { engine, keyring, logKeys, keyFileMade: undefined };
  } catch (error) {
    await engine.close();
    throw refusalOf(error, nameOf(settings.database));
  }
}

/** The keys that are given now, over no database in particular. Makes none. */
export function givenKeyring(settings: Settings, ambient: Ambient): LiveKeyring {
  return openLiveKeyring(obtainMasterKeys(masterKeySource(settings), true, ambient).keys, () => [], ambient);
}

/**
 * Throws Refusal unless the master keys of these settings are those of a database file. Makes none. Answers the keys of its
 * log; undefined where it has none yet.
 */
export async function proveKeysOf(
  settings: Settings,
  path: string,
  ambient: Ambient,
): Promise<LogKeys | undefined> {
  const database = await inspectEngine({ engine: 'sqlite', path });
  try {
    const { access } = database.accessOf();
    const proofs = await access.keyChecks();
    if (proofs.length === 0) return undefined;
    const keyring = givenKeyring(settings, ambient);
    proveAll(keyring, proofs);
    return await findLogKeys(access, keyring, ambient);
  } finally {
    await database.close();
  }
}

/** The database of these settings, to be looked at and never written. */
export function inspect({ database }: Settings): ReturnType<typeof inspectEngine> {
  return inspectEngine(database);
}

/**
 * Changes the master key to the one in `nextKeyFile`, made there where the file does not exist, while others go on. The
 * key file in force gets the new key; a key given by value is the operator's to replace.
 */
export async function rewrap(
  settings: Settings,
  nextKeyFile: string,
  ambient: Ambient,
): Promise<MasterKeyChanged & { readonly isKeyMade: boolean; readonly source: MasterKeySource }> {
  const source = masterKeySource(settings);
  if (source.from === 'nowhere') throw new Refusal('a database in memory keeps its master key to itself');
  const keyFile = 'path' in source ? source.path : undefined;
  if (keyFile !== undefined && resolve(keyFile) === resolve(nextKeyFile)) {
    throw new Refusal(`${nextKeyFile} is the key file in force: name another one for the new key`);
  }
  const engine = await openDatabase(settings, ambient);
  try {
    if ((await engine.access.keyChecks()).length === 0) {
      throw new Refusal('this database has no master key yet: its first start makes one');
    }
    const { keys: held } = obtainMasterKeys(source, true, ambient);
    const holding = openLiveKeyring(held, () => [], ambient);
    await keepLog(engine, holding, ambient);
    const { key: next, isMade } = obtainNextKey(nextKeyFile, ambient);
    const changed = await changeMasterKey({
      held,
      next,
      keep: (keys) => keyFile !== undefined && replaceKeyFile(keyFile, keys, ambient),
      store: { ...engine.sealed, keyChecks: engine.access.keyChecks },
      ambient,
    });
    return { ...changed, isKeyMade: isMade, source };
  } finally {
    await engine.close();
  }
}

/** What a server listens with and logs. */
export function serverSettings(settings: Settings): ServerSettings {
  return { ...settings, tls: readTls(settings), isShared: settings.processes > 1 };
}

function rateSettings({ addressRate, clientRate, badTokenRate, processes }: Settings): RateSettings {
  const badTokens = badTokenRate === 'off' ? undefined : badTokenRate;
  return { perAddress: addressRate, perClient: clientRate, badTokens, processes };
}

interface Readings {
  readonly store: Store;
  /** What reads beside the service; absent where nothing does. */
  readonly figures: Children['figures'] | undefined;
  close(): Promise<void>;
}

/** Records; of a file what takes long is read beside this process, which would stop for it. */
function openReadings({ database }: Settings, engine: Engine): Readings {
  const path = fileOf(database);
  const { embedded } = engine;
  if (path === undefined || !embedded) {
    return { store: engine.records, figures: undefined, close: async () => undefined };
  }
  const readers = openChildren({
    command: besideCommand('reader', path),
    atOnce: LIMITS.readersMax,
    waitingMax: LIMITS.listsWaitingMax,
    waitMsMax: LIMITS.listMsMax,
  });
  const list = embedded.listBeside(readers.ask);
  const countBelow: Store['countBelow'] = ({ name }, key) => {
    const question: CountQuestion = { resource: name, key };
    return readers.ask<number>(question);
  };
  const { figures, close } = readers;
  return { store: { ...engine.records, list, countBelow }, figures, close };
}

/** What is served. */
export interface Served extends Pick<Vault, 'engine' | 'keyring' | 'logKeys'> {
  /** Asks what all processes of the service measure together; not given: there is this one alone. */
  readonly askTogether?: () => Promise<Snapshot>;
  /** One more route, of a process that has one; it is told where it listens. */
  readonly door?: (url: string) => Route;
}

export interface Service extends Server {
  readonly metrics: {
    /** What this process measures of itself. */
    own(): Promise<Snapshot>;
    /** What all processes of the service do. Rejects with Fault `unavailable` where nobody tells it in time. */
    together(): Promise<Snapshot>;
  };
}

/** Answers metrics on a listener of their own, where the settings name one. */
export async function serveMetrics(
  { metricsHost: host, metricsPort: port, trustedProxies, forwardedHeader }: Settings,
  log: Log,
  snapshot: () => Promise<Snapshot>,
): Promise<Pick<Server, 'url' | 'stop'> | undefined> {
  if (port === undefined) return undefined;
  const plain = { tls: undefined, isShared: false, corsOrigins: [], requestLogging: 'off' } as const;
  const listening = { host, port, trustedProxies, forwardedHeader, ...plain };
  return startServer(listening, log, async () => metricsRoutes(snapshot));
}

function sealerOf(keyring: Vault['keyring']): Pick<Makers, 'seal'> {
  return { seal: (place, plain) => keyring.seal('oidc-client-secret', place, plain) };
}

function pagesOf({ noConsole }: Settings, baseUrl: string, door: Route | undefined): readonly Route[] {
  return noConsole ? [] : [...consoleRoutes(CONSOLE_FOLDER, baseUrl), ...(door ? [door] : [])];
}

/** Serves a vault until the server is stopped. The base URL is the address itself unless the settings name one. */
export async function serve(
  settings: Settings,
  { engine, keyring, logKeys, askTogether, door }: Served,
  log: Log,
  ambient: Ambient,
): Promise<Service> {
  const issuing = { settings, issuers: readIssuers(settings), engine, keyring, logKeys };
  const { readingMsMax, causesCountedMax: causesMax } = LIMITS;
  const metrics = openMetrics({ isCounting: settings.metricsPort !== undefined, readingMsMax, causesMax });
  const startedAt = ambient.now();
  const installation = await engine.access.storeId();
  const hasher = openHasher(passwordCost(settings), besideCommand('hasher'));
  const learner = openLearner(settings, ambient);
  const makers = { ...sealerOf(keyring), hash: hasher.hash, learn: learner.learn };
  const rules = { installation, issuersMatch: settings.strictIssuers };
  const readings = openReadings(settings, engine);
  const { store } = readings;
  const directory = openDirectory(store, makers, rules, ambient);
  const working = { directory, once: openOnce({ store, keyring, ambient }), inspect: learner.inspect };
  const { granted, listener, ...counting } = openCounting(engine, log, ambient);
  const together = askTogether ?? metrics.snapshot;
  const searching = openSearch();
  const told = {
    witnesses: witnessesOf(settings, logKeys, ambient, log),
    metrics: together,
    search: searching.search,
  };
  const mayTell = webhookRule(settings);
  const administered = openAdministration({ engine, keyring, logKeys, mayTell, ...told });
  const limits = openRateLimits(rateSettings(settings), ambient);
  let telling: Telling | undefined;
  const makeRoutes = async (url: string) => {
    const baseUrl = settings.baseUrl ?? url;
    const { access, tokens, ...asking } = openAuthority(issuing, baseUrl, log, ambient);
    const grant = openGrants(tokens, ambient, granted);
    telling = startTelling({ settings, engine, store, keyring, log, ambient, tokens, baseUrl, installation });
    metrics.add(accessMeasure(access.ageMs), ...tellingMeasures(telling.measured));
    const rooms = { store, access, tokens, grant, ...asking, limits, ...working, ambient, ...telling };
    const said = { installation, pageLength: settings.pageLength, baseUrl, version: VERSION };
    return [...routesOf({ ...rooms, ...administered, ...said }), ...pagesOf(settings, baseUrl, door?.(url))];
  };
  const watch = { limits, meter: metrics.meter, listener };
  const server = await startServer(serverSettings(settings), log, makeRoutes, watch);
  metrics.add(
    ...measuresOf({
      version: VERSION,
      engine: settings.database.engine,
      startedAt,
      figures: engine.figures,
      readers: readings.figures,
      hasher: hasher.figures,
      discoveries: learner.discoveries,
      pending: server.pending,
    }),
  );
  const sweeping = startSweeping([store.forgetExpired, engine.access.forgetConsoleLinks], ambient);
  const checkpoints = tellCheckpoints(settings, { engine, logKeys }, log, ambient);
  metrics.add(checkpointMeasure(checkpoints.ageMs));
  return {
    url: server.url,
    pending: server.pending,
    metrics: { own: metrics.snapshot, together },
    async stop() {
      metrics.close();
      await telling?.stop();
      await server.stop();
      await counting.stop();
      await Promise.all([hasher, readings, searching].map(({ close }) => close()));
      await Promise.all([sweeping.stop(), checkpoints.stop()]);
    },
  };
}
