import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run } from './release/build.ts';
import { hasLockedPackages } from './release/package_lock.ts';

/** Without install scripts; npm downloads what its cache lacks. */
const INSTALL = 'npm ci --ignore-scripts --no-fund --no-audit --prefer-offline --loglevel=error'.split(' ');

const FILES = ['.npmrc', 'package.json', 'package-lock.json'];

/** Installs the packages of a folder with its own lock file, if they are missing or others (CONTRIBUTING.md#own-lock-files). */
export async function installPackages(folder: string): Promise<void> {
  if (hasLockedPackages(folder)) return;
  const dist = join(ROOT, 'dist');
  mkdirSync(dist, { recursive: true });
  // Suites of several processes may install at the same time: each renames a complete folder, and the first one wins.
  const temporary = mkdtempSync(join(dist, 'install-'));
  try {
    for (const file of FILES)
      if (existsSync(join(ROOT, folder, file))) cpSync(join(ROOT, folder, file), join(temporary, file));
    await run(INSTALL, { folder: temporary });
    if (hasLockedPackages(folder)) return;
    const target = join(ROOT, folder, 'node_modules');
    rmSync(target, { recursive: true, force: true });
    renameSync(join(temporary, 'node_modules'), target);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}
