import { readFileSync } from 'node:fs';

/** A server of the bench. */
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

/** Starts a server, on the first core unless it is told otherwise, and waits until it listens. */
export async function startServer(
  command: readonly string[],
  port: number,
  { isPinned = true } = {},
): Promise<BenchServer> {
  const child = Bun.spawn(isPinned ? pinned(SERVER_CORE, command) : [...command], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  // A bench that fails must not leave a server behind for the next one to measure.
  process.once('exit', () => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  await answered(() => fetch(url));
  return {
    url,
    memory: () => memoryOf(child.pid),
    async stop() {
      child.kill('SIGTERM');
      await child.exited;
    },
  };
}

/** Asks until there is any answer; milliseconds it took. */
export async function answered(ask: () => Promise<Response>): Promise<{ answer: Response; ms: number }> {
  const start = performance.now();
  while (performance.now() - start < 30_000) {
    try {
      const answer = await ask();
      return { answer, ms: performance.now() - start };
    } catch {
      await Bun.sleep(1);
    }
  }
  throw new Error('the server did not answer within 30 s');
}

/** What a process holds of its own, and what it has mapped of files, which the system may take back. */
export function memoryOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
  return { anonymousMb: megabytes('RssAnon'), fileMb: megabytes('RssFile') };
}
