import { ignoreSignals } from '../process/signals.ts';
import { type Handle, type Message, openChannel } from './protocol.ts';

/** Connects a worker to its parent, whose requests `handle` answers. */
export function connectToParent(handle: Handle) {
  const gone = Promise.withResolvers<void>();
  process.once('disconnect', gone.resolve);
  const send = (message: Message) => {
    if (process.connected) process.send?.(message);
  };
  const { request, receive } = openChannel(send, handle);
  process.on('message', receive);
  if (!process.connected) gone.resolve();
  return {
    request,
    /** Sent once, when the worker can take requests. */
    ready: (detail?: unknown) => send({ kind: 'ready', detail }),
    /** Resolves when the parent has exited or closed the connection. */
    gone: gone.promise,
    /** As long as the connection is open and has a listener it keeps this process alive. */
    disconnect(): void {
      process.off('message', receive);
      process.disconnect?.();
    },
  };
}

/** Answers requests until the parent is gone. */
export async function serveParent(handle: Handle): Promise<void> {
  // A terminal and a service manager signal every process of a group; the parent ends what is in flight.
  ignoreSignals();
  const parent = connectToParent(handle);
  parent.ready();
  await parent.gone;
  parent.disconnect();
}
