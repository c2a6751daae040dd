import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '../domain/fault.ts';

const PREFIX = '.authrealm-dry-run-';

/**
 * A folder for the copy that a dry run works on, named after the process that will remove it. What processes that were
 * killed have left there is removed first: it holds password hashes.
 */
export function makeRehearsalFolder(beside: string): string {
  try {
    removeLeftBehind(beside);
    return mkdtempSync(join(beside, `${PREFIX}${hostname()}-${process.pid}-`));
  } catch (error) {
    throw notRehearsed(error);
  }
}

/** Folders of this host whose process is gone. Those of another host on the same disk are its own business. */
function removeLeftBehind(folder: string): void {
  const own = `${PREFIX}${hostname()}-`;
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(own) ? Number(/^(\d+)-/.exec(name.slice(own.length))?.[1]) : Number.NaN;
    if (Number.isNaN(pid) || isRunning(pid)) continue;
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** This process has made no folder yet: one of its number is that of an earlier process, as in a container. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Why a dry run cannot have its copy, where it is not a bug. */
export function notRehearsed(error: unknown): unknown {
  if (error instanceof Refusal || !(error instanceof Error) || !('code' in error)) return error;
  return new Refusal(
    `--dry-run works on a copy of the database in the same folder, and it cannot be made: ${error.message}. Make ` +
      'room for one there, and let this user make files',
    { cause: error },
  );
}
