import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createReleaseClone, TAG } from '../support/release_clone.ts';

/**
 * Builds the same tag twice, at the same time, each in a clone of its own in another folder with packages at its own path, and
 * compares every file (docs/releasing.md, "The same bytes"). Names of artefacts build only these.
 */

async function run(command: readonly string[], folder: string): Promise<void> {
  const child = Bun.spawn([...command], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed in ${folder}`);
}

const work = mkdtempSync(join(tmpdir(), 'authrealm-two-releases-'));
const clone = await createReleaseClone();

try {
  // At different depths: a relative path that enters a file would differ.
  const [first, second] = [join(work, 'one'), join(work, 'a longer', 'path', 'two')];
  const quiet = ['--quiet', '--config', 'advice.detachedHead=false'];
  for (const folder of [first, second])
    await run(['git', 'clone', ...quiet, '--branch', TAG, clone.folder, folder], work);
  await run(['npm', 'ci', '--no-fund', '--no-audit'], first);
  await run(['cp', '--archive', '--link', join(first, 'node_modules'), second], work);
  const build = (folder: string) => run(['npm', 'run', 'release', '--', ...process.argv.slice(2)], folder);
  // Both end before the folders are removed.
  for (const built of await Promise.allSettled([first, second].map(build)))
    if (built.status === 'rejected') throw built.reason;
  const names = new Set([first, second].flatMap((folder) => readdirSync(join(folder, 'dist/release'))));
  const bytesIn = (folder: string, name: string) => readFileSync(join(folder, 'dist/release', name));
  const different = [...names].sort().filter((name) => !bytesIn(first, name).equals(bytesIn(second, name)));
  console.log(`${names.size} files of ${TAG}, different: ${different.join(', ') || 'none'}`);
  process.exitCode = different.length === 0 ? 0 : 1;
} finally {
  clone.remove();
  rmSync(work, { recursive: true });
}
