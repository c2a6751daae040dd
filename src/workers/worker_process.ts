import { constants, getPriority, setPriority } from 'node:os';
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
  /** Does not keep this process alive. */
  readonly isBackground?: boolean;
  /** Added to that of this process; default: 0. */
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

/** Throws where the program cannot be run. */
export function startWorkerProcess(
  { command, isBackground = false, niceness = 0, hasEnvironment = false }: WorkerProcessSettings,
  { onReady, handle = () => undefined, onExit }: WorkerProcessEvents,
): WorkerProcess {
  const child = Bun.spawn([...command], {
    ...(hasEnvironment ? {} : { env: {} }),
    stdio: ['ignore', 'ignore', 'inherit'],
    serialization: 'advanced',
    ipc(message: Message) {
      if (message.kind === 'ready') onReady?.(message.detail);
      else channel.receive(message);
    },
    onExit: (_, code) => onExit?.(code ?? -1),
  });
  lowerPriority(child.pid, niceness);
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

/** Before the program starts threads, which inherit the priority. A worker that cannot be slowed down does its work all the same. */
function lowerPriority(pid: number, niceness: number): void {
  try {
    if (niceness > 0) setPriority(pid, Math.min(getPriority() + niceness, constants.priority.PRIORITY_LOW));
  } catch {
    // It has exited, or the system forbids it.
  }
}
