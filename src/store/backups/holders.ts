import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';

/** A process that has a file open. */
export interface Holder {
  readonly pid: number;
  readonly name: string;
}

/** Names of the files that the engine keeps beside a database. */
export const COMPANIONS = ['-wal', '-shm', '-journal'] as const;

/**
 * Other processes that have a database or a file of its engine open, as far as this one may see: those of its own user, of
 * everybody for root. Undefined where the system has no such list.
 */
export function holdersOf(path: string): readonly Holder[] | undefined {
  if (!existsSync('/proc/self/fd')) return undefined;
  const files = [path, ...COMPANIONS.map((ending) => path + ending)].flatMap((file) => fileAt(file) ?? []);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid && hasOpen(name, files))
    .map((name) => ({ pid: Number(name), name: nameOf(name) }));
}

function hasOpen(pid: string, files: readonly string[]): boolean {
  const folder = `/proc/${pid}/fd`;
  return namesIn(folder).some((descriptor) => {
    const file = fileAt(`${folder}/${descriptor}`);
    return file !== undefined && files.includes(file);
  });
}

function fileAt(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** Empty where the process is somebody else's, or has just ended. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '?';
  }
}
