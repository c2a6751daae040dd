import { openProviderDiscovery } from '../access/outbound/discovery.ts';
import { openTokenGrants } from '../access/tokens/token_grant.ts';
import { consoleRoutes } from '../http/operations/console.ts';
import { metricsRoutes } from '../http/operations/metrics.ts';
import { openIdempotency } from '../http/pipeline/idempotency.ts';
import { type LoopBudget, openLoopBudget } from '../http/pipeline/loop_budget.ts';
import { openRateLimits } from '../http/server/rate_limits.ts';
import type { Route } from '../http/server/router.ts';
import { type Server, type ServerSettings, startServer } from '../http/server/server.ts';
import type { Clock } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { programFile } from '../model/program_files.ts';
import type { RealmSearchPage } from '../model/store.ts';
import { withTimeout } from '../model/timeout.ts';
import { METRICS } from '../ops/metrics/declarations.ts';
import type { Snapshot } from '../ops/metrics/family.ts';
import { openMetrics } from '../ops/metrics/metrics.ts';
import { watchDescriptors } from '../ops/process/descriptors.ts';
import type { Log } from '../ops/process/log.ts';
import { type Engine, fileOf, type ReaderSearchRequest } from '../ops/store/open.ts';
import { workerCommand } from '../ops/workers/command.ts';
import { openPool } from '../ops/workers/pool.ts';
import { openDirectory } from '../records/directory.ts';
import { openSettingsRealms } from '../records/settings_realms.ts';
import { openAdministration } from './administration.ts';
import { routesOf } from './api/routes.ts';
import { openAuthentication, readIssuers } from './authentication.ts';
import { type ChangeDelivery, startChangeDelivery } from './change_delivery.ts';
import { startCheckpointFile } from './checkpoint_file.ts';
import { readTls, type Settings } from './config/parse.ts';
import { startExpiry } from './expiry.ts';
import { openOidcSignIn } from './oidc_sign_in.ts';
import type { OpenDatabase } from './open_database.ts';
import { outboundRules } from './outbound.ts';
import type { ServiceContext } from './service_context.ts';
import { ageMetrics, serviceMetrics, upkeepMetrics } from './service_metrics.ts';
import { openSignIn } from './sign_in.ts';
import { openUsageTracking } from './usage.ts';

/** The built pages of the console. */
const CONSOLE_FOLDER = programFile('dist/console');

/** The settings of the listener and of request logging. */
export function serverSettings(settings: Settings): ServerSettings {
  return { ...settings, tls: readTls(settings), isShared: settings.processes > 1 };
}

/**
 * The record store, and the reader processes of a SQLite file: long lists are read there, off the event loop. `figures`:
 * undefined without reader processes.
 */
function openStoreWithReaders({ database }: Settings, engine: Engine) {
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
  const list = embedded.listDelegating(readers.request);
  const searchRealms = embedded.searchDelegating(({ name: resource }, search) =>
    readers.request<RealmSearchPage>({ resource, search } satisfies ReaderSearchRequest),
  );
  return { ...readers, store: { ...engine.records, list, searchRealms } };
}

/** An open database to serve. */
export interface ServedDatabase extends Pick<OpenDatabase, 'engine' | 'keyring' | 'logKeys'> {
  /** The metrics of all serving processes; default: those of this process. */
  readonly allMetrics?: () => Promise<Snapshot>;
  /** A further route. */
  readonly extraRoute?: Route;
}

export type Service = Awaited<ReturnType<typeof serve>>;

/** Serves metrics on a separate listener, if the settings have an address for it. */
export async function serveMetrics(
  { metrics: address, trustedProxies }: Settings,
  log: Log,
  snapshot: () => Promise<Snapshot>,
  loopBudget?: LoopBudget,
): Promise<Pick<Server, 'url' | 'stop'> | undefined> {
  if (address === undefined) return undefined;
  const fixed = { tls: undefined, isShared: false, corsOrigins: [], requestLogging: 'off' } as const;
  const listenerSettings = { ...address, trustedProxies, flag: '--metrics', ...fixed } as const;
  return startServer(listenerSettings, log, async () => metricsRoutes(snapshot, loopBudget));
}

/**
 * Starts the service and returns it once it listens. The composition root: modules get what they need here, and import no other
 * module's implementation. Without a base URL in the settings, the address of the listener is taken.
 */
export async function serve(
  settings: Settings,
  { engine, keyring, logKeys, extraRoute, ...served }: ServedDatabase,
  log: Log,
  clock: Clock,
) {
  const issuers = readIssuers(settings);
  const metrics = openMetrics(settings.metrics !== undefined);
  const allMetrics = served.allMetrics ?? metrics.snapshot;
  const loopBudget = openLoopBudget({ workMs: engine.workMs });
  const context: ServiceContext = { settings, engine, keyring, logKeys, loopBudget, log, clock };
  const startedAt = clock.now();
  // A process that cannot open connections for lookups does not start.
  const [installation] = await Promise.all([engine.access.storeId(), engine.records.ready()]);
  const usage = openUsageTracking(context);
  const { signIn, hashPassword, budgets, ...passwords } = openSignIn(context, usage);
  const { store, ...readers } = openStoreWithReaders(settings, engine);
  const { discoverIssuer, discoveries } = openProviderDiscovery(outboundRules(context), clock);
  const writeRecords = openDirectory(
    store,
    {
      seal: (place, plain) => keyring.seal('oidc-client-secret', place, plain),
      hashPassword,
      discoverIssuer,
      get: store.get,
    },
    { installation, issuersMatch: settings.strictIssuers },
    clock,
  );
  const oidc = openOidcSignIn(context, { store, writeRecords });
  const settingsRealms = openSettingsRealms(store, clock, { ...settings, installation });
  const withIdempotency = openIdempotency({ store, keyring, clock });
  const administration = openAdministration(context, budgets);
  const limits = openRateLimits(settings, clock);
  let changeDelivery: ChangeDelivery | undefined;
  const makeRoutes = async (url: string, isDraining: () => boolean) => {
    const baseUrl = settings.baseUrl ?? url;
    const { access, jwts, tokens, ...authentication } = openAuthentication(context, issuers, baseUrl);
    changeDelivery = startChangeDelivery({ ...context, store, tokens, baseUrl, installation });
    metrics.add(ageMetrics(METRICS.accessTableAge, access.ageMs), ...changeDelivery.collectors);
    const routes = routesOf({
      ...authentication,
      ...changeDelivery,
      ...administration,
      ...context,
      store,
      writeRecords,
      withIdempotency,
      settingsRealms,
      oidc,
      access,
      tokens,
      limits,
      isDraining,
      installation,
      baseUrl,
      metrics: allMetrics,
      grant: openTokenGrants(tokens, clock, usage.granted),
      signIn: signIn({ access, jwts }, { issuer: baseUrl, installation }),
    });
    if (settings.noConsole) return routes;
    return [...routes, ...consoleRoutes(CONSOLE_FOLDER, baseUrl), ...(extraRoute ? [extraRoute] : [])];
  };
  const observers = { ...usage, limits, meter: metrics.meter };
  const listener = serverSettings(settings);
  const server = await startServer(listener, log, makeRoutes, observers);
  const descriptors = watchDescriptors(log);
  const expiry = startExpiry([store.sweepIdempotency, engine.access.deleteExpiredSignIns], clock);
  const checkpoints = startCheckpointFile(context);
  const sources = { startedAt, discoveries, readers: readers.figures, ...passwords.figures };
  metrics.add(
    serviceMetrics(context, { ...sources, pending: server.pending }),
    ageMetrics(METRICS.checkpointAge, checkpoints.ageMs),
    upkeepMetrics(context, listener.tls),
    passwords.collect,
  );
  return {
    ...server,
    loopBudget,
    /** `own`: of this process. `readAll` rejects with Fault `unavailable` if the parent does not respond in time. */
    metrics: { own: metrics.snapshot, readAll: allMetrics },
    async stop(): Promise<void> {
      metrics.close();
      await changeDelivery?.stop();
      await server.stop();
      const ended = Promise.all(administration.transfers.values());
      await withTimeout(ended, LIMITS.cutTransferMsMax, () => undefined);
      await usage.stop();
      await Promise.all([passwords.stop(), readers.close()]);
      await Promise.all([expiry, checkpoints, descriptors].map(({ stop }) => stop()));
    },
  };
}
