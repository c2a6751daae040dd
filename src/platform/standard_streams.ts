import { AsyncLocalStorage } from 'node:async_hooks';
import type { Readable, Writable } from 'node:stream';

/** The standard streams of a command. `isTTY` is absent where one is no terminal. */
export interface StandardStreams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

export type OutputStream = Writable & { readonly isTTY?: boolean };

const passed = new AsyncLocalStorage<StandardStreams>();

/** Runs a command on these streams, if any are given; others may run in the same process concurrently. */
export function withStandardStreams<T>(streams: StandardStreams | undefined, run: () => T): T {
  return streams === undefined ? run() : passed.run(streams, run);
}

export function standardStreams(): StandardStreams {
  return passed.getStore() ?? process;
}

/** Writes a line to standard output. */
export function printLine(line: string): void {
  const { stdout } = standardStreams();
  // Unlike the stream, `console.log` has written when it returns, and ignores a reader that is gone.
  if (stdout === process.stdout) console.log(line);
  else stdout.write(`${line}\n`);
}

/** Writes a line to standard error as it is: on a terminal `console.error` would show it in red. */
export function printNotice(line: string): void {
  standardStreams().stderr.write(`${line}\n`);
}
