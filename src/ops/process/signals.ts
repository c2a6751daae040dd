import { isatty } from 'node:tty';
import { STANDARD_INPUT } from './standard_streams.ts';

/** Aborts at the first SIGTERM or SIGINT. The next one kills the process. */
export function abortAtSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
  return stop.signal;
}

/**
 * Resolves with the name of the first signal that stops a service: SIGTERM, SIGINT, SIGQUIT, or SIGHUP from the terminal in which it was
 * started. Other signals that operators send are ignored (docs/guides/processes.md#signals), and further ones as well, because the time
 * that a service takes to stop is bounded.
 */
export function receiveStopSignal(): Promise<string> {
  const isInTerminal = isatty(STANDARD_INPUT);
  ignoreSignals();
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const) process.on(signal, () => resolve(signal));
    if (isInTerminal) process.on('SIGHUP', () => resolve('SIGHUP'));
  });
}

/** Keeps the signals that operators, terminals and log rotation send from ending this process. */
export function ignoreSignals(): void {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
    process.on(signal, () => undefined);
  }
}
