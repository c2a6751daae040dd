import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VERSION } from '../../src/platform/version.ts';
import { freshFolder } from './folder.ts';
import { runCommand } from './processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RELEASES_FOLDER = join(import.meta.dir, '../fixtures/releases');

/** The releases with stored code, oldest first. */
export const RELEASES: readonly string[] = readdirSync(RELEASES_FOLDER).sort(Bun.semver.order);

/** The newest release before this version. */
export const PREVIOUS_RELEASE = RELEASES.filter((release) => release !== VERSION).at(-1) ?? '';

/** Unpacks the code of a release, with the dependencies of this one. */
export async function unpackRelease(release: string): Promise<string> {
  const tree = join(freshFolder(), release);
  mkdirSync(tree);
  const archive = join(RELEASES_FOLDER, release, 'code.tgz');
  const { code, stderr } = await runCommand(['tar', '-xzf', archive, '-C', tree]);
  if (code !== 0) throw new Error(stderr);
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  return tree;
}
