import { constants } from 'node:os';
import { type Channel, type Handle, type Message, openChannel } from './protocol.ts';

/** Pause before a process that exited is started again, so that one that cannot start takes little of a processor. */
export const RESTART_MS = 1_000;

/** One process of this program, started by this one. */
export interface WorkerProcess extends Pick<Channel, 'request'> {
  readonly pid: number;
  readonly exited: Promise<number>;
  /** From then on the worker keeps this process alive until it has exited. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export interface WorkerProcessSettings {
  /** The command line, with the program by an absolute path. Every user of the machine can read it. */
  readonly command: readonly string[];
  /** Does not keep this process alive, and runs at a lower priority. */
  readonly isBackground?: boolean;
  /** The priority of a background process; default: the lowest. */
  readonly niceness?: number;
  /** Default: the environment of the worker is empty. */
  readonly hasEnvironment?: boolean;
}

export interface WorkerProcessEvents {
  onReady?(detail: unknown): void;
  /** Answers the requests of the worker. */
  readonly handle?: Handle;
  onExit?(code: number): void;
}

/**
 * Sets the priority before the worker starts, for its start and each thread of the runtime; `nice` becomes the program, so
 * process and connection are the worker's. Undefined where the system has none.
 */
const NICE = Bun.which('nice', { PATH: '/usr/bin:/bin' });

/** Throws where the program cannot be run. */
export function startWorkerProcess(
  {
    command,
    isBackground = false,
    niceness = constants.priority.PRIORITY_LOW,
    hasEnvironment = false,
  }: WorkerProcessSettings,
  { onReady, handle = () => undefined, onExit }: WorkerProcessEvents,
): WorkerProcess {
  const prefix = isBackground && NICE ? [NICE, '-n', String(niceness)] : [];
  const child = Bun.spawn([...prefix, ...command], {
    ...(hasEnvironment ? {} : { env: {} }),
    stdio: ['ignore', 'ignore', 'inherit'],
    serialization: 'advanced',
    ipc(message: Message) {
      if (message.kind === 'ready') onReady?.(message.detail);
      else channel.receive(message);
    },
    onExit: (_, code) => onExit?.(code ?? -1),
  });
  const channel = openChannel((message) => child.send(message), handle);
  if (isBackground) child.unref();
  return {
    pid: child.pid,
    exited: child.exited,
    request: channel.request,
    kill(signal) {
      child.ref();
      child.kill(signal);
    },
  };
}
