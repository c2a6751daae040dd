import { expect } from 'bun:test';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type BinaryTarget, binaryName, buildBinary } from '../../scripts/release/binary.ts';
import { ROOT } from '../../scripts/release/build.ts';
import { freshFolder } from './folder.ts';
import { runCommand } from './processes.ts';

/**
 * Artefacts that several suites test, which nothing may write to. AUTHREALM_TEST_ARTEFACTS is a folder in which the suites of one
 * run of .ci/run share them; without it each suite builds its own.
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
    // At once, because another suite may look for it now.
    renameSync(await build(folder), path);
    rmSync(folder, { recursive: true });
  }
  return path;
}

export function sharedBinary(target: BinaryTarget): Promise<string> {
  return sharedArtefact(binaryName(target), (folder) => buildBinary(target, folder));
}

/** The folder of the documentation, built as `npm run site` builds it. */
export function sharedSite(): Promise<string> {
  return sharedArtefact('site', async (folder) => {
    const site = join(folder, 'site');
    const { code, stderr } = await runCommand([process.execPath, join(ROOT, 'site/build.tsx'), site]);
    expect([code, stderr]).toEqual([0, '']);
    return site;
  });
}
