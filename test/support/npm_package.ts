import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sharedArtefact } from './folder.ts';
import { runCommand } from './processes.ts';
import { copySourceTree } from './source_copy.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** As a release does, in a shell whose arguments are Bun, the tree, and the target. */
const BUILD = 'cd "$1" && "$0" scripts/build_console.ts && exec "$0" scripts/release/npm_package.ts "$2"';

/** The npm package as `buildNpmPackage` builds it. */
export function sharedNpmPackage(): Promise<string> {
  return sharedArtefact(`authrealm-${readManifest().version}.tgz`, (folder) => buildNpmPackage(folder));
}

/** Builds the npm package with the script of a release, in a copy of this tree in a folder; returns the path of the archive. */
export async function buildNpmPackage(folder: string, umask = '022'): Promise<string> {
  const copy = join(folder, 'copy');
  mkdirSync(copy);
  await copySourceTree(copy, umask);
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const environment = { GIT_DIR: join(ROOT, '.git') };
  const { stdout, stderr, code } = await runCommand(
    ['sh', '-c', `umask ${umask} && ${BUILD}`, process.execPath, copy, folder],
    environment,
  );
  if (code !== 0) throw new Error(stderr);
  return stdout.trim().split('\n').at(-1) ?? '';
}

/** The manifest of this tree. */
export function readManifest(): {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
} {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
}
