import { closeSync, fsyncSync, linkSync, lstatSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '../model/fault.ts';
import { newFileErrorText } from '../model/file_error.ts';
import type { Clock } from '../model/id.ts';
import { isUnread, STANDARD_OUTPUT, standardStreams, writeAll } from '../ops/process/standard_streams.ts';
import { syncPath } from '../sql/fsync.ts';

/** Writes data of a command. Every error of it is a Refusal with the next step. */
export type WriteText = (text: string) => Promise<void>;

/** The reader of standard output is gone. A broken connection has the same code, but is an error to report. */
export class OutputUnread extends Error {}

/** Writes to standard output. */
export async function writeOut(text: string): Promise<void> {
  const { stdout } = standardStreams();
  try {
    if (stdout === process.stdout) await writeAll(STANDARD_OUTPUT, Buffer.from(text));
    else stdout.write(text);
  } catch (error) {
    if (isUnread(error)) throw new OutputUnread();
    throw notWritten('standard output', error);
  }
}

/**
 * Writes a new file of mode 0600, which gets its name only when `use` has ended and it is synced to disk; until then its content is
 * in a temporary file next to it. Throws Refusal if the name exists: nothing is ever overwritten.
 */
export async function writeNewFile<T>(
  path: string,
  clock: Pick<Clock, 'mintId'>,
  use: (write: WriteText) => Promise<T>,
): Promise<T> {
  const temporaryPath = `${path}.${clock.mintId()}.partial`;
  const file = attempt(path, () => {
    // Before everything is written; the link below decides.
    if (lstatSync(path, { throwIfNoEntry: false })) throw Object.assign(new Error(), { code: 'EEXIST' });
    return openSync(temporaryPath, 'wx', 0o600);
  });
  try {
    const result = await use((text) =>
      writeAll(file, Buffer.from(text)).catch((error: unknown) => {
        throw notWritten(path, error);
      }),
    );
    attempt(path, () => {
      fsyncSync(file);
      linkSync(temporaryPath, path);
      rmSync(temporaryPath);
      syncPath(dirname(path));
    });
    return result;
  } finally {
    closeSync(file);
    rmSync(temporaryPath, { force: true });
  }
}

function attempt<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw notWritten(path, error);
  }
}

function notWritten(what: string, error: unknown): Refusal {
  return new Refusal(`${what} could not be written: ${newFileErrorText(what, error)}`, { cause: error });
}
