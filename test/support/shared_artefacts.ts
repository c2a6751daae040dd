import { expect } from 'bun:test';
import { join } from 'node:path';
import { type BinaryTarget, binaryName, buildBinary } from '../../scripts/release/binary.ts';
import { ROOT } from '../../scripts/release/build.ts';
import { sharedArtefact } from './folder.ts';
import { runCommand } from './processes.ts';

/** What several suites test: nothing may write to it. */

export function sharedBinary(target: BinaryTarget): Promise<string> {
  return sharedArtefact(binaryName(target), (folder) => buildBinary(target, folder));
}

/** The folder of the documentation, built as `npm run site` builds it. */
export function sharedSite(): Promise<string> {
  return sharedArtefact('site', async (folder) => {
    const site = join(folder, 'site');
    const { code, stderr } = await runCommand([process.execPath, join(ROOT, 'site/build.ts'), site]);
    expect([code, stderr]).toEqual([0, '']);
    return site;
  });
}
