import { openSync } from 'node:fs';
import type { TestDatabase } from '../support/database.ts';
import { childrenOf, descendantsOf, isAlive } from '../support/process_tree.ts';
import { AUTHREALM } from '../support/processes.ts';

/** A service that can be killed and restarted on the same database and address. */
export interface RestartableService {
  readonly url: string;
  /** It was stopped and is not started again. */
  readonly isStopped: boolean;
  /** Resolves once it is ready. Rejects when it cannot become ready. */
  waitUntilReady(): Promise<void>;
  /** Kills all of its processes, or one of those that share the port, and waits until it is ready again. */
  kill(processes: 'all' | 'one'): Promise<void>;
  /** Sends SIGTERM; resolves with the exit code. */
  stop(): Promise<number>;
  /** Kills every process that is left. */
  end(): Promise<void>;
}

/** A busy machine takes long to start a process. */
const READY_MS_MAX = 120_000;
const ANSWER_MS_MAX = 6_000;

interface RestartableOptions {
  readonly database: TestDatabase;
  readonly port: number;
  /** Receives its output. */
  readonly logFile: string;
  /** The program; this release by default. */
  readonly authrealm?: string;
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Restarted when it exits, as by a supervisor. */
  readonly isSupervised?: boolean;
}

export async function startRestartable(
  options: RestartableOptions,
  processes: number,
): Promise<RestartableService> {
  const { database, port, logFile, authrealm = AUTHREALM, flags = [], environment = {} } = options;
  const url = `http://127.0.0.1:${port}`;
  const words = ['serve', '--port', String(port), '--processes', String(processes), '--offline'];
  const command = [authrealm, ...words, ...flags, ...database.args];
  const log = openSync(logFile, 'a');
  const env = { PATH: process.env.PATH ?? '', ...environment };
  const spawn = () => Bun.spawn(command, { stdio: ['ignore', log, log], env });
  let child = spawn();
  let isStopped = false;

  async function waitUntilReady(): Promise<void> {
    const deadline = performance.now() + READY_MS_MAX;
    while (!isStopped && performance.now() < deadline) {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const answer = await fetch(`${url}/readyz`, { headers: { Connection: 'close' }, signal }).catch(
        () => undefined,
      );
      if (answer?.status === 200) return;
      if (child.exitCode !== null && !isStopped) {
        if (!options.isSupervised)
          throw new Error(`the service exited with ${child.exitCode}, see ${logFile}`);
        child = spawn();
      }
      await Bun.sleep(10);
    }
    throw new Error(`the service did not become ready again, see ${logFile}`);
  }

  /** Kills the parent first, so that it does not restart its children. */
  async function killAll(): Promise<void> {
    const tree = [child.pid, ...descendantsOf(child.pid)];
    for (const pid of tree) killProcess(pid);
    await child.exited;
    while (tree.some(isAlive)) await Bun.sleep(1);
  }

  await waitUntilReady();
  return {
    url,
    waitUntilReady,
    get isStopped() {
      return isStopped;
    },
    async end() {
      isStopped = true;
      await killAll();
    },
    async kill(processes) {
      const [worker] = processes === 'one' ? childrenOf(child.pid) : [];
      if (worker !== undefined) killProcess(worker);
      else {
        await killAll();
        child = spawn();
      }
      await waitUntilReady();
    },
    async stop() {
      isStopped = true;
      child.kill('SIGTERM');
      return child.exited;
    },
  };
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}
