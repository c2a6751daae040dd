import { mkdirSync, rmSync } from 'node:fs';
import type { Clock } from '../../domain/id.ts';

/**
 * Gives work a private folder next to a file, on the same file system, and removes it afterwards, with any files that
 * the engine created in it.
 */
export async function withTemporaryFolder<T>(
  path: string,
  { mintId }: Pick<Clock, 'mintId'>,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = `${path}.${mintId()}.partial`;
  mkdirSync(folder, { mode: 0o700 });
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
