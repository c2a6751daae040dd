/**
 * Resolves with the name of the first SIGTERM or SIGINT. With `on` further signals are ignored, because the time that a
 * service takes to stop is bounded. With `once` the next signal kills the process.
 */
export function receiveSignal(listen: 'on' | 'once'): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process[listen](signal, () => resolve(signal));
  });
}
