import { mkdirSync, rmSync } from 'node:fs';
import { Refusal } from '../../../model/fault.ts';
import { newFileErrorText } from '../../../model/file_error.ts';
import type { Clock } from '../../../model/id.ts';

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
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const why = newFileErrorText(path, error);
    throw new Refusal(`no temporary folder can be created next to ${path}: ${why}`, { cause: error });
  }
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
