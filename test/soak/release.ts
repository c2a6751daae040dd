import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createReleaseClone, TAG } from '../support/release_clone.ts';

/**
 * Builds the same tag twice, each in a clone of its own in another folder with packages of its own, and compares every file
 * (docs/releasing.md, "The same bytes"). Names of artefacts build only these.
 */

async function run(command: readonly string[], folder: string): Promise<void> {
  const child = Bun.spawn([...command], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed in ${folder}`);
}

const work = mkdtempSync(join(tmpdir(), 'authrealm-two-releases-'));
const clone = await createReleaseClone();
try {
  // At different depths: a relative path that enters a file would differ.
  const folders = [join(work, 'one'), join(work, 'a longer', 'path', 'two')];
  for (const folder of folders) {
    await run(['git', 'clone', '--quiet', '--branch', TAG, clone.folder, folder], work);
    await run(['npm', 'ci', '--no-fund', '--no-audit'], folder);
    await run(['npm', 'run', 'release', '--', ...process.argv.slice(2)], folder);
  }
  const [first = '', second = ''] = folders.map((folder) => join(folder, 'dist/release'));
  const names = new Set([...readdirSync(first), ...readdirSync(second)]);
  const bytesIn = (folder: string, name: string) => readFileSync(join(folder, name));
  const different = [...names].sort().filter((name) => !bytesIn(first, name).equals(bytesIn(second, name)));
  console.log(`${names.size} files of ${TAG}, different: ${different.join(', ') || 'none'}`);
  process.exitCode = different.length === 0 ? 0 : 1;
} finally {
  clone.remove();
  rmSync(work, { recursive: true });
}
