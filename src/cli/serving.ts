import { existsSync } from 'node:fs';
import { parseBootstrapClient } from '../access/clients/bootstrap.ts';
import { type ClientSpec, ensureClient } from '../access/clients/clients.ts';
import { readIssuers } from '../app/authentication.ts';
import { type Flags, privateFiles, readSettingFile, type Settings } from '../app/config/parse.ts';
import { type OpenDatabase, openDatabase, reopenDatabase } from '../app/open_database.ts';
import { type Service, serve, serveMetrics, serverSettings } from '../app/service.ts';
import { assertPortFree } from '../http/server/server.ts';
import { Fault } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import { withTimeout } from '../model/timeout.ts';
import { VERSION } from '../model/version.ts';
import type { Snapshot } from '../ops/metrics/family.ts';
import { systemClock } from '../ops/process/clock.ts';
import { type Log, openLog } from '../ops/process/log.ts';
import { receiveStopSignal } from '../ops/process/signals.ts';
import { printLine } from '../ops/process/standard_streams.ts';
import { closeQuietly } from '../ops/store/open.ts';
import { connectToParent } from '../ops/workers/parent.ts';
import { readFileMode } from './file_mode.ts';
import { printNewKeyFile } from './key_file.ts';
import { type Listening, type ServingRequest, startServingProcesses } from './serving_processes.ts';

const NO_CLIENTS =
  'no clients yet: "authrealm init" creates a realm and a client, "authrealm client create" a client for existing realms';

/** Serves until a signal, in one process or in several that share the port; worker processes receive the same flags. */
export async function serveUntilSignal(settings: Settings, flags: Flags): Promise<void> {
  // First of all: otherwise every worker process reports an invalid file, exits and is restarted.
  readIssuers(settings);
  const { processes } = settings;
  const bootstrap = bootstrapClientOf(settings);
  const stopped = receiveStopSignal();
  const log = openLog(settings.logFormat);
  reportOpenFiles(settings, log);
  const db = await openDatabase(settings, systemClock, false, (done) =>
    log.write({ event: 'migrated', ...done }),
  );
  try {
    printNewKeyFile(db);
    if (bootstrap) await ensureClient(db.engine.access, bootstrap, systemClock);
    const running = await startServing(settings, db, flags, log);
    let metrics: Awaited<ReturnType<typeof serveMetrics>>;
    try {
      metrics = await serveMetrics(settings, log, running.metrics, running.loopBudget);
      const { url } = running;
      printLine(`listening on ${url}`);
      if (metrics) printLine(`metrics on ${metrics.url}/metrics`);
      const table = await db.engine.access.state(undefined);
      if (table?.clients.length === 0) printLine(NO_CLIENTS);
      const { engine } = settings.database;
      log.write({ event: 'started', url, version: VERSION, engine, pid: process.pid });
      // The worker processes have their own connections.
      if (processes > 1) await db.engine.close();
      log.write({ event: 'stopping', signal: await stopped });
      await running.drain();
    } finally {
      await running.stop();
      await metrics?.stop();
    }
    if (processes === 1) await db.engine.close();
  } catch (error) {
    await closeQuietly(db.engine);
    throw error;
  }
  log.write({ event: 'stopped' });
}

/** Secrets and databases that other users may read. */
function reportOpenFiles(settings: Settings, log: Log): void {
  for (const path of privateFiles(settings)) {
    if (!existsSync(path)) continue;
    const { octal: mode, isOpen } = readFileMode(path, true);
    if (isOpen) log.write({ event: 'file_mode', path, mode });
  }
}

function bootstrapClientOf({ bootstrapClientFile: path }: Settings): ClientSpec | undefined {
  if (path === undefined) return undefined;
  return parseBootstrapClient(path, readSettingFile('--bootstrap-client-file', path));
}

/** Serves until the parent stops this process or exits; both report metrics to each other. */
export async function serveForParent(settings: Settings): Promise<void> {
  const parent = connectToParent(() => {
    if (!service) throw new Fault('not_ready');
    return service.metrics.own();
  });
  // From the start: the parent may exit before the service runs.
  const ended = Promise.race([receiveStopSignal(), parent.gone]);
  let service: Service | undefined;
  const request = <T>(message: ServingRequest) => parent.request<T>(message);
  // Twice the limit, because the parent waits for the other processes.
  const allMetrics = () =>
    withTimeout(request<Snapshot>({ ask: 'metrics of all' }), 2 * LIMITS.metricsReplyMsMax, () => {
      throw new Fault('unavailable');
    });
  try {
    const db = await reopenDatabase(settings, systemClock);
    try {
      service = await serve(settings, { ...db, allMetrics }, openLog(settings.logFormat), systemClock);
      parent.ready({ url: service.url } satisfies Listening);
      await ended;
      await service.drain(settings.drainDelay);
      await service.stop();
      const reported = request<void>({ lastMetrics: await service.metrics.own() });
      await withTimeout(Promise.race([reported, parent.gone]), LIMITS.metricsReplyMsMax, () => undefined);
    } finally {
      await db.engine.close();
    }
  } finally {
    parent.disconnect();
  }
}

/** Serves in this process, or in several that share the port. `drain` waits for the drain delay. */
async function startServing(settings: Settings, db: OpenDatabase, flags: Flags, log: Log) {
  // Before anything starts that a failure would have to stop, and to drain.
  const { port, metrics: metricsAddress } = settings;
  const listener = serverSettings(settings);
  if (port !== 0) await assertPortFree(listener);
  if (metricsAddress) await assertPortFree({ ...listener, ...metricsAddress, flag: '--metrics' });
  if (settings.processes > 1) {
    // Each of them waits at its stop.
    return { ...(await startServingProcesses(settings, flags, log)), drain: async () => undefined };
  }
  const { url, drain, stop, metrics, loopBudget } = await serve(settings, db, log, systemClock);
  return { url, drain: () => drain(settings.drainDelay), stop, metrics: metrics.own, loopBudget };
}
