import { constants, getPriority, setPriority } from 'node:os';
import { attempt } from '../../model/attempt.ts';
import { type Handle, type Message, openChannel } from './protocol.ts';

/** Pause before a process that exited is started again, so that one that cannot start takes little of a processor. */
export const RESTART_MS = 1_000;

interface WorkerProcessOptions {
  /** The command line, with the program by an absolute path. Every user of the machine can read it. */
  readonly command: readonly string[];
  /** It does not keep this process alive. */
  readonly isBackground?: boolean;
  /** It inherits the environment, with its secrets; default: an empty one. */
  readonly hasEnvironment?: boolean;
  /** Added to that of this process; default: 0. */
  readonly niceness?: number;
  onReady(detail: unknown): void;
  /** Answers the requests of the worker. */
  readonly handle?: Handle;
  onExit(code: number): void;
}

export type WorkerProcess = ReturnType<typeof startWorkerProcess>;

/** Starts another process of this program. Throws where the program cannot be run. */
export function startWorkerProcess({
  command,
  isBackground = false,
  hasEnvironment = false,
  niceness = 0,
  onReady,
  handle = () => undefined,
  onExit,
}: WorkerProcessOptions) {
  const child = Bun.spawn([...command], {
    ...(hasEnvironment ? {} : { env: {} }),
    stdio: ['ignore', 'ignore', 'inherit'],
    serialization: 'advanced',
    ipc(message: Message) {
      if (message.kind === 'ready') onReady(message.detail);
      else channel.receive(message);
    },
    onExit: (_, code) => onExit(code ?? -1),
  });
  lowerPriority(child.pid, niceness);
  const channel = openChannel((message) => child.send(message), handle);
  if (isBackground) child.unref();
  return {
    pid: child.pid,
    exited: child.exited,
    request: channel.request,
    /** From then on the worker keeps this process alive until it has exited. */
    kill(signal: 'SIGTERM' | 'SIGKILL'): void {
      child.ref();
      child.kill(signal);
    },
  };
}

/** Before the program starts threads, which inherit the priority. A worker that cannot be slowed down does its work all the same. */
function lowerPriority(pid: number, niceness: number): void {
  if (niceness === 0) return;
  // It throws if the worker has exited, or the system forbids it.
  attempt(() => setPriority(pid, Math.min(getPriority() + niceness, constants.priority.PRIORITY_LOW)));
}
