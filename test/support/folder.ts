import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where this run of the suite keeps its files; test/support/preload.ts removes it. */
export const RUN_FOLDER = join(tmpdir(), `authrealm-test-${process.pid}`);

/** A fresh private folder. */
export function freshFolder(): string {
  mkdirSync(RUN_FOLDER, { recursive: true });
  return mkdtempSync(join(RUN_FOLDER, 'f-'));
}

/**
 * A file or folder that several suites use, and that nothing may write to. AUTHREALM_TEST_ARTEFACTS is a folder in which the suites of
 * one run of .ci/run share them; without it each suite builds its own.
 */
export async function sharedArtefact(
  name: string,
  build: (folder: string) => Promise<string>,
): Promise<string> {
  const shared = process.env.AUTHREALM_TEST_ARTEFACTS;
  if (shared === undefined) return build(freshFolder());
  const path = join(shared, name);
  if (!existsSync(path)) {
    const folder = mkdtempSync(join(shared, 'build-'));
    const built = await build(folder);
    try {
      // Atomically: another suite may look for it now.
      renameSync(built, path);
    } catch (error) {
      // A folder cannot replace that of a suite which built it at the same time.
      if (!existsSync(path)) throw error;
    }
    rmSync(folder, { recursive: true });
  }
  return path;
}
