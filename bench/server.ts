import { readFileSync } from 'node:fs';

export interface BenchServer {
  readonly url: string;
  /** Anonymous and file-backed memory of the process, in MB. */
  memory(): { readonly anonymousMb: number; readonly fileMb: number };
  stop(): Promise<void>;
}

export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

export function pinned(core: number, command: readonly string[]): string[] {
  return ['taskset', '-c', String(core), ...command];
}

/** Starts a server, by default pinned to the first core, and waits until it responds. */
export async function startServer(
  command: readonly string[],
  port: number,
  { isPinned = true } = {},
): Promise<BenchServer> {
  const child = Bun.spawn(isPinned ? pinned(SERVER_CORE, command) : [...command], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  // A bench that fails must not leave a server running that uses the port and the core of the next one.
  process.once('exit', () => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  await waitForResponse(() => fetch(url));
  return {
    url,
    memory: () => memoryOf(child.pid),
    async stop() {
      child.kill('SIGTERM');
      await child.exited;
    },
  };
}

/** Repeats a request until the server responds; returns the response and the milliseconds that passed. */
export async function waitForResponse(
  request: () => Promise<Response>,
): Promise<{ response: Response; ms: number }> {
  const start = performance.now();
  while (performance.now() - start < 30_000) {
    try {
      const response = await request();
      return { response, ms: performance.now() - start };
    } catch {
      await Bun.sleep(1);
    }
  }
  throw new Error('the server did not respond within 30 s');
}

/** Anonymous memory, and mapped file pages, which the system may evict. */
export function memoryOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
  return { anonymousMb: megabytes('RssAnon'), fileMb: megabytes('RssFile') };
}
