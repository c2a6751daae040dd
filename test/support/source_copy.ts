import { fileURLToPath } from 'node:url';
import { runCommand } from './processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Files that are deleted and not yet committed are left out. */
const COPY =
  'git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read | tar -x -C "$0"';

/** Copies this source tree as it is now, without the files that Git ignores, into a folder. */
export async function copySourceTree(folder: string, umask = '022'): Promise<void> {
  const inRoot = `cd "${ROOT}" && umask ${umask} && ${COPY}`;
  const { stderr, code } = await runCommand(['sh', '-c', inRoot, folder]);
  if (code !== 0) throw new Error(stderr);
}
