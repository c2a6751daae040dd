import type { Flags, Settings } from '../app/config/parse.ts';
import { Refusal } from '../model/fault.ts';
import { LIMITS } from '../model/limits.ts';
import type { Snapshot } from '../ops/metrics/family.ts';
import { systemClock } from '../ops/process/clock.ts';
import { watchDescriptors } from '../ops/process/descriptors.ts';
import type { Log } from '../ops/process/log.ts';
import { workerCommand } from '../ops/workers/command.ts';
import { RESTART_MS, startWorkerProcess, type WorkerProcess } from '../ops/workers/worker_process.ts';
import { toArguments } from './context.ts';
import { openMetricsAggregation } from './metrics_aggregation.ts';

/** Sent by a serving process when it is ready. */
export interface Listening {
  readonly url: string;
}

/** Requests of a serving process to its parent. The parent requests only metrics. */
export type ServingRequest = { readonly ask: 'metrics of all' } | { readonly lastMetrics: Snapshot };

/**
 * Starts the processes that share the port; the first one chooses it. A process that exits is replaced after RESTART_MS. `metrics`:
 * those of all processes, aggregated.
 */
export async function startServingProcesses(settings: Settings, flags: Flags, log: Log) {
  const aggregation = openMetricsAggregation(systemClock.now(), settings.metrics !== undefined);
  const descriptors = watchDescriptors(log);
  const running = new Set<WorkerProcess>();
  let replacing: ReturnType<typeof setTimeout> | undefined;
  let isStopping = false;
  let isServing = false;
  let { port } = settings;

  /** Resolves with the URL once the process listens. */
  function start(): Promise<string> {
    const ready = Promise.withResolvers<string>();
    let isReady = false;
    const command = workerCommand('worker', ...toArguments({ ...flags, port: String(port) }));
    const child = startWorkerProcess({
      command,
      hasEnvironment: true,
      handle(request) {
        const asked = request as ServingRequest;
        return 'lastMetrics' in asked ? source.finish(asked.lastMetrics) : aggregation.read();
      },
      onReady(detail) {
        isReady = true;
        ready.resolve((detail as Listening).url);
      },
      onExit(code) {
        running.delete(child);
        source.remove();
        ready.reject(new Refusal('a worker exited before it was ready; see its output above'));
        if (isStopping || !(isServing || isReady)) return;
        log.write({ event: 'process_exited', pid: child.pid, code });
        replaceLater();
      },
    });
    const source = aggregation.add(() => child.request<Snapshot>('metrics'));
    running.add(child);
    log.write({ event: 'process_started', pid: child.pid });
    return ready.promise;
  }

  function replaceLater(): void {
    clearTimeout(replacing);
    replacing = setTimeout(replace, RESTART_MS);
  }

  function replace(): void {
    try {
      // Its exit is handled above.
      while (isServing && !isStopping && running.size < settings.processes) start().catch(() => undefined);
    } catch {
      replaceLater();
    }
  }

  async function stop(): Promise<void> {
    isStopping = true;
    clearTimeout(replacing);
    descriptors.stop();
    aggregation.stop();
    const kill = (signal: 'SIGTERM' | 'SIGKILL') => [...running].map((child) => child.kill(signal));
    kill('SIGTERM');
    const stopMsMax = settings.drainDelay * 1_000 + LIMITS.drainMsMax + 2_000;
    const deadline = setTimeout(kill, stopMsMax, 'SIGKILL');
    await Promise.all([...running].map(({ exited }) => exited));
    clearTimeout(deadline);
  }

  try {
    const url = await start();
    port = Number(new URL(url).port || (url.startsWith('https') ? 443 : 80));
    await Promise.all(Array.from({ length: settings.processes - 1 }, start));
    isServing = true;
    replace();
    return { url, stop, metrics: aggregation.read };
  } catch (error) {
    await stop();
    throw error;
  }
}
