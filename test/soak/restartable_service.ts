import { openSync } from 'node:fs';
import type { TestDatabase } from '../support/database.ts';
import { childrenOf, descendantsOf, isAlive } from '../support/process_tree.ts';
import { AUTHREALM } from '../support/processes.ts';

/** A service that is killed and comes back, on the same database and the same address. */
export interface Mortal {
  readonly url: string;
  /** It was ended for good. */
  readonly isOver: boolean;
  /** Resolves once it serves. Rejects where it never will. */
  up(): Promise<void>;
  /** Kills all of its processes, or one of those that share the port; it is up again afterwards. */
  kill(whom: 'all' | 'one'): Promise<void>;
  /** Ends it as an operator does; resolves with the exit code. */
  stop(): Promise<number>;
  /** Ends whatever is still there. */
  end(): Promise<void>;
}

/** A machine that has much else to do takes its time to start a process. */
const PATIENCE_MS = 120_000;
const ANSWER_MS_MAX = 6_000;

interface Place {
  readonly database: TestDatabase;
  readonly port: number;
  /** Where it writes what it says. */
  readonly logFile: string;
  /** The program; this release unless it says. */
  readonly authrealm?: string;
  /** More of the command line. */
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Started again where it ends by itself, as a supervisor does. */
  readonly isSupervised?: boolean;
}

/** Serves a database at a port, in so many processes. */
export async function startMortal(place: Place, processes: number): Promise<Mortal> {
  const { database, port, logFile, authrealm = AUTHREALM, flags = [], environment = {} } = place;
  const url = `http://127.0.0.1:${port}`;
  const words = ['serve', '--port', String(port), '--processes', String(processes), '--offline'];
  const command = [authrealm, ...words, ...flags, ...database.args];
  const log = openSync(logFile, 'a');
  const env = { PATH: process.env.PATH ?? '', ...environment };
  const spawn = () => Bun.spawn(command, { stdio: ['ignore', log, log], env });
  let child = spawn();
  let isOver = false;

  async function up(): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!isOver && performance.now() < deadline) {
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const answer = await fetch(`${url}/readyz`, { headers: { Connection: 'close' }, signal }).catch(
        () => undefined,
      );
      if (answer?.status === 200) return;
      if (child.exitCode !== null && !isOver) {
        if (!place.isSupervised) throw new Error(`the service ended with ${child.exitCode}: ${logFile}`);
        child = spawn();
      }
      await Bun.sleep(10);
    }
    throw new Error(`the service does not come back: ${logFile}`);
  }

  /** The one that starts the others goes first, so that it starts no more. */
  async function endAll(): Promise<void> {
    const tree = [child.pid, ...descendantsOf(child.pid)];
    for (const pid of tree) killed(pid);
    await child.exited;
    while (tree.some(isAlive)) await Bun.sleep(1);
  }

  await up();
  return {
    url,
    up,
    get isOver() {
      return isOver;
    },
    async end() {
      isOver = true;
      await endAll();
    },
    async kill(whom) {
      const [worker] = whom === 'one' ? childrenOf(child.pid) : [];
      if (worker !== undefined) killed(worker);
      else {
        await endAll();
        child = spawn();
      }
      await up();
    },
    async stop() {
      isOver = true;
      child.kill('SIGTERM');
      return child.exited;
    },
  };
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
