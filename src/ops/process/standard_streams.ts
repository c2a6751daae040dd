import { AsyncLocalStorage } from 'node:async_hooks';
import { write } from 'node:fs';
import type { Readable, Writable } from 'node:stream';

export const STANDARD_INPUT = 0;
export const STANDARD_OUTPUT = 1;
export const STANDARD_ERROR = 2;
const RETRY_MS = 1;

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

/** Characters that a terminal interprets or cannot show: control and format characters, lone surrogates. */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** The text with such characters, which a name in the database may have, as JSON escapes them; tabs and ends of lines stay. */
export function escapeUnprintable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    character === '\n' || character === '\t'
      ? character
      : character
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}

/** Writes a line to standard output. */
export function printLine(line: string): void {
  const { stdout } = standardStreams();
  const text = escapeUnprintable(line);
  // Unlike the stream, `console.log` has written when it returns, and ignores a reader that is gone.
  if (stdout === process.stdout) console.log(text);
  else stdout.write(`${text}\n`);
}

/** Writes a line to standard error as it is: on a terminal `console.error` would show it in red. */
export function printNotice(line: string): void {
  standardStreams().stderr.write(`${escapeUnprintable(line)}\n`);
}

/** Whether the reader of the output is gone, as that of `… | head`. */
export function isUnread(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EPIPE';
}

/** Writes to an open file. Repeats partial writes; a full pipe is tried again. */
export async function writeAll(file: number, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    try {
      from += await writeSome(file, bytes.subarray(from));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      await Bun.sleep(RETRY_MS);
    }
  }
}

function writeSome(file: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    write(file, bytes, (error, count) => (error ? reject(error) : resolve(count)));
  });
}
