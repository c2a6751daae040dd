import { fileURLToPath } from 'node:url';
import { openTokenGrants } from '../auth/tokens/token_grant.ts';
import { passwordCost, readTls, type Settings, webhookRule } from '../config/parse.ts';
import { openDirectory } from '../directory/directory.ts';
import type { DirectoryDeps } from '../directory/finishing.ts';
import type { Store } from '../directory/store.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import { consoleRoutes } from '../http/operations/console.ts';
import { metricsRoutes } from '../http/operations/metrics.ts';
import { openIdempotency } from '../http/pipeline/idempotency.ts';
import { openRateLimits, type RateSettings } from '../http/server/rate_limits.ts';
import type { Route } from '../http/server/router.ts';
import { routesOf } from '../http/server/routes.ts';
import { type Server, type ServerSettings, startServer } from '../http/server/server.ts';
import { startSweeping } from '../jobs/expiry.ts';
import type { Snapshot } from '../metrics/family.ts';
import { openMetrics } from '../metrics/metrics.ts';
import { openLearner } from '../outbound/learner.ts';
import type { Log } from '../platform/log.ts';
import { VERSION } from '../platform/version.ts';
import { type CountQuestion, type Engine, fileOf } from '../store/open.ts';
import { workerCommand } from '../workers/command.ts';
import { openHasher } from '../workers/hasher.ts';
import { openPool, type Pool } from '../workers/pool.ts';
import { openSearcher } from '../workers/searcher.ts';
import { openAdministration } from './administration.ts';
import { openAuthority, readIssuers } from './authentication.ts';
import { startTelling, type Telling } from './change_delivery.ts';
import { checkpointSinksOf, startCheckpointSinks } from './checkpoint_sinks.ts';
import type { OpenDatabase } from './open_database.ts';
import { accessMetrics, checkpointMetrics, feedMetrics, serviceMetrics } from './service_metrics.ts';
import { openCounting } from './usage.ts';

export { readIssuers } from './authentication.ts';

/** Where what the console is made of was built. */
const CONSOLE_FOLDER = fileURLToPath(new URL('../../dist/console', import.meta.url));

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
  /** Of the workers that read; undefined where there are none. */
  readonly figures: Pool['figures'] | undefined;
  close(): Promise<void>;
}

/** Records; of a file what takes long is read beside this process, which would stop for it. */
function openReadings({ database }: Settings, engine: Engine): Readings {
  const path = fileOf(database);
  const { embedded } = engine;
  if (path === undefined || !embedded) {
    return { store: engine.records, figures: undefined, close: async () => undefined };
  }
  const readers = openPool({
    command: workerCommand('reader', path),
    workersMax: LIMITS.readersMax,
    waitingMax: LIMITS.listsWaitingMax,
    waitMsMax: LIMITS.listMsMax,
  });
  const list = embedded.listBeside(readers.request);
  const countBelow: Store['countBelow'] = ({ name }, key) => {
    const question: CountQuestion = { resource: name, key };
    return readers.request<number>(question);
  };
  const { figures, close } = readers;
  return { store: { ...engine.records, list, countBelow }, figures, close };
}

/** What is served. */
export interface Served extends Pick<OpenDatabase, 'engine' | 'keyring' | 'logKeys'> {
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

function sealerOf(keyring: OpenDatabase['keyring']): Pick<DirectoryDeps, 'seal'> {
  return { seal: (place, plain) => keyring.seal('oidc-client-secret', place, plain) };
}

function pagesOf({ noConsole }: Settings, baseUrl: string, door: Route | undefined): readonly Route[] {
  return noConsole ? [] : [...consoleRoutes(CONSOLE_FOLDER, baseUrl), ...(door ? [door] : [])];
}

/** Serves an open database until the server is stopped. The base URL is the address itself unless the settings name one. */
export async function serve(
  settings: Settings,
  { engine, keyring, logKeys, askTogether, door }: Served,
  log: Log,
  clock: Clock,
): Promise<Service> {
  const issuing = { settings, issuers: readIssuers(settings), engine, keyring, logKeys };
  const { collectorMsMax, errorCausesMax: causesMax } = LIMITS;
  const metrics = openMetrics({ isCounting: settings.metricsPort !== undefined, collectorMsMax, causesMax });
  const startedAt = clock.now();
  const installation = await engine.access.storeId();
  const hasher = openHasher(passwordCost(settings));
  const { learn, inspect, discoveries } = openLearner(settings, clock);
  const directoryDeps = { ...sealerOf(keyring), hashPassword: hasher.hash, discoverIssuer: learn };
  const rules = { installation, issuersMatch: settings.strictIssuers };
  const readings = openReadings(settings, engine);
  const { store } = readings;
  const directory = openDirectory(store, directoryDeps, rules, clock);
  const writing = { directory, withIdempotency: openIdempotency({ store, keyring, clock }), inspect };
  const { granted, listener, ...counting } = openCounting(engine, log, clock);
  const together = askTogether ?? metrics.snapshot;
  const searcher = openSearcher();
  const told = {
    checkpointSinks: checkpointSinksOf(settings, logKeys, clock, log),
    metrics: together,
    search: searcher.search,
  };
  const mayTell = webhookRule(settings);
  const administered = openAdministration({ engine, keyring, logKeys, mayTell, ...told });
  const limits = openRateLimits(rateSettings(settings), clock);
  let telling: Telling | undefined;
  const makeRoutes = async (url: string) => {
    const baseUrl = settings.baseUrl ?? url;
    const { access, tokens, ...asking } = openAuthority(issuing, baseUrl, log, clock);
    const grant = openTokenGrants(tokens, clock, granted);
    telling = startTelling({ settings, engine, store, keyring, log, clock, tokens, baseUrl, installation });
    metrics.add(accessMetrics(access.ageMs), ...feedMetrics(telling.measured));
    const rooms = { store, access, tokens, grant, ...asking, limits, ...writing, clock, ...telling };
    const said = { installation, pageLength: settings.pageLength, baseUrl, version: VERSION };
    return [...routesOf({ ...rooms, ...administered, ...said }), ...pagesOf(settings, baseUrl, door?.(url))];
  };
  const watch = { limits, meter: metrics.meter, listener };
  const server = await startServer(serverSettings(settings), log, makeRoutes, watch);
  metrics.add(
    serviceMetrics({
      version: VERSION,
      engine: settings.database.engine,
      startedAt,
      figures: engine.figures,
      readers: readings.figures,
      hasher: hasher.figures,
      discoveries,
      pending: server.pending,
    }),
  );
  const sweeping = startSweeping([store.sweepIdempotency, engine.access.deleteExpiredConsoleLinks], clock);
  const checkpoints = startCheckpointSinks(settings, { engine, logKeys }, log, clock);
  metrics.add(checkpointMetrics(checkpoints.ageMs));
  return {
    url: server.url,
    pending: server.pending,
    metrics: { own: metrics.snapshot, together },
    async stop() {
      metrics.close();
      await telling?.stop();
      await server.stop();
      await counting.stop();
      await Promise.all([hasher, readings, searcher].map(({ close }) => close()));
      await Promise.all([sweeping.stop(), checkpoints.stop()]);
    },
  };
}
