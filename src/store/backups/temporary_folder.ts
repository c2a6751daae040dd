import { mkdirSync, rmSync } from 'node:fs';
import type { Clock } from '../../domain/id.ts';

/**
 * Gives work a private folder beside a file, on the same disk, and removes it afterwards: what the engine keeps beside a
 * file that is being made goes with it.
 */
export async function withDrafts<T>(
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
