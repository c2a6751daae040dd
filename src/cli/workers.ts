import { systemAmbient } from '../ambient.ts';
import { serverSettings } from '../app.ts';
import { besideCommand } from '../beside.ts';
import type { Flags, Settings } from '../config.ts';
import { Refusal } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { assertFree, type Server } from '../http/server.ts';
import type { Snapshot } from '../observe/family.ts';
import type { Log } from '../observe/log.ts';
import { written } from './context.ts';
import { isUtterance } from './conversation.ts';
import { openGathering } from './gathering.ts';

const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 5_000;

type Worker = Bun.Subprocess;

/** What a worker says first, and once. What it says later are utterances. */
export interface Listening {
  readonly url: string;
}

export interface Workers extends Pick<Server, 'url' | 'stop'> {
  /** What all of them measure together. */
  together(): Promise<Snapshot>;
}

/** Starts the processes that share the port; the first one finds it. One that dies is replaced. */
export async function startWorkers(settings: Settings, flags: Flags, log: Log): Promise<Workers> {
  const gathering = openGathering(systemAmbient.now(), settings.metricsPort !== undefined);
  const running = new Set<Worker>();
  let isStopping = false;
  let isServing = false;
  let { port } = settings;

  function start(restartMs: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const startedAt = systemAmbient.monotonic();
    let hasServed = false;
    const worker = Bun.spawn([...besideCommand('worker', ...written({ ...flags, port: String(port) }))], {
      stdio: ['ignore', 'inherit', 'inherit'],
      ipc: (message: unknown) => {
        if (isUtterance(message)) return member.hear(message);
        hasServed = true;
        resolve((message as Listening).url);
      },
      onExit: (ended, code) => {
        running.delete(ended);
        member.leave();
        reject(new Refusal('a process ended before it served; what it said stands above'));
        if (isStopping || !(isServing || hasServed)) return;
        log.write({ event: 'process_ended', pid: ended.pid, code: code ?? -1 });
        const livedLong = systemAmbient.monotonic() - startedAt > RESTART_MS_MAX;
        const waitMs = livedLong ? RESTART_MS_MIN : restartMs;
        const next = Math.min(waitMs * 2, RESTART_MS_MAX);
        setTimeout(() => isStopping || start(next).catch(() => undefined), waitMs);
      },
    });
    const member = gathering.join((utterance) => worker.send(utterance));
    running.add(worker);
    log.write({ event: 'process_started', pid: worker.pid });
    return promise;
  }

  async function stop(): Promise<void> {
    isStopping = true;
    gathering.stop();
    const all = [...running];
    for (const worker of all) worker.kill('SIGTERM');
    const deadline = setTimeout(() => {
      for (const worker of running) worker.kill('SIGKILL');
    }, LIMITS.drainMsMax + 2_000);
    await Promise.all(all.map((worker) => worker.exited));
    clearTimeout(deadline);
  }

  if (port !== 0) await assertFree(serverSettings(settings));
  try {
    const url = await start(RESTART_MS_MIN);
    port = Number(new URL(url).port || (url.startsWith('https') ? 443 : 80));
    await Promise.all(Array.from({ length: settings.processes - 1 }, () => start(RESTART_MS_MIN)));
    isServing = true;
    return { url, stop, together: gathering.together };
  } catch (error) {
    await stop();
    throw error;
  }
}
