import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build.ts';

/** The packages of package-lock.json. */

export interface LockedPackage {
  /** Its folder, from the root of the repository. */
  readonly path: string;
  /** The name under which it is installed. */
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
}

/** Development packages that are bundled into what browsers load: the console and the search of the documentation. */
export const BUNDLED_PACKAGES: readonly string[] = ['minisearch', 'preact'];

/** The packages of a lock file, by default package-lock.json. */
export function lockedPackages(file = 'package-lock.json'): readonly LockedPackage[] {
  const { packages } = JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as {
    readonly packages: Readonly<Record<string, Omit<LockedPackage, 'path' | 'name'>>>;
  };
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, locked]) => ({ ...locked, path, name: path.split('node_modules/').at(-1) ?? '' }));
}

/** Whether `node_modules` of a folder has the packages of its lock file; optional ones may be missing. */
export function hasLockedPackages(folder: string): boolean {
  const installedFile = join(folder, 'node_modules/.package-lock.json');
  if (!existsSync(join(ROOT, installedFile))) return false;
  const installed = new Map(lockedPackages(installedFile).map(({ path, version }) => [path, version]));
  return lockedPackages(join(folder, 'package-lock.json')).every(({ path, version, optional }) =>
    installed.has(path) ? installed.get(path) === version : optional === true,
  );
}

/** The packages in the files of a release. */
export function releasedPackages(): readonly LockedPackage[] {
  return lockedPackages().filter(({ name, dev }) => !dev || BUNDLED_PACKAGES.includes(name));
}
