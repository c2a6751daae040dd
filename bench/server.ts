import { type Memory, memoryOf } from '../test/support/process_tree.ts';
import { type ProcessUsage, usageOf } from './process_usage.ts';

export interface BenchServer {
  readonly url: string;
  readonly pid: number;
  /** Milliseconds from the start of the process to its first response of any kind. */
  readonly startMs: number;
  usage(): ProcessUsage;
  memory(): Memory;
  stop(): Promise<void>;
  /** Starts the same command in a new process: two processes of one program differ in speed by up to 15 %. */
  restart(): Promise<void>;
}

export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

export function pinned(core: number, command: readonly string[]): string[] {
  return ['taskset', '-c', String(core), ...command];
}

interface StartOptions {
  readonly isPinned?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly startSecondsMax?: number;
}

/** Starts a server, by default pinned to the first core, and waits until it responds. */
export async function startServer(
  command: readonly string[],
  port: number,
  { isPinned = true, environment = {}, cwd, startSecondsMax = 30 }: StartOptions = {},
): Promise<BenchServer> {
  const url = `http://127.0.0.1:${port}`;
  await assertPortUnused(url);
  const spawn = () =>
    Bun.spawn(isPinned ? pinned(SERVER_CORE, command) : [...command], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...environment },
      ...(cwd !== undefined && { cwd }),
    });
  const respond = () => waitForResponse(() => fetch(url), startSecondsMax);
  let child = spawn();
  // A bench that fails must not leave a server running that uses the port and the core of the next one. nginx ends its
  // worker only at this signal.
  process.once('exit', () => child.kill('SIGTERM'));
  const { ms: startMs } = await respond();
  const stop = async () => {
    child.kill('SIGTERM');
    await child.exited;
  };
  return {
    url,
    startMs,
    get pid() {
      return child.pid;
    },
    usage: () => usageOf(child.pid),
    memory: () => memoryOf(child.pid),
    stop,
    async restart() {
      await stop();
      child = spawn();
      await respond();
    },
  };
}

/** Another server on the port would be measured in place of the one that is started. */
async function assertPortUnused(url: string): Promise<void> {
  const isUnused = await fetch(url).then(
    () => false,
    () => true,
  );
  if (!isUnused) throw new Error(`another server answers at ${url}: stop it first`);
}

/** Repeats a request until the server responds; returns the response and the milliseconds that passed. */
export async function waitForResponse(
  request: () => Promise<Response>,
  secondsMax = 30,
): Promise<{ response: Response; ms: number }> {
  const start = performance.now();
  while (performance.now() - start < secondsMax * 1_000) {
    try {
      const response = await request();
      return { response, ms: performance.now() - start };
    } catch {
      await Bun.sleep(1);
    }
  }
  throw new Error(`the server did not respond within ${secondsMax} s`);
}
