/**
 * Resolves with the name of the signal that asks the process to stop. With `on` those that follow ask for nothing new:
 * how long a service takes to stop has a bound. With `once` the next one ends the process, whatever it waits for.
 */
export function signalled(listen: 'on' | 'once'): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process[listen](signal, () => resolve(signal));
  });
}
