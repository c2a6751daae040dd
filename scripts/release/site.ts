import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import manifest from '../../package.json';
import { ROOT, run, runBuild, writeTarGz } from './build.ts';

/** Builds the documentation and packs it: `bun scripts/release/site.ts FOLDER`. */

await runBuild(async (folder) => {
  const name = `authrealm-${manifest.version}-docs`;
  const temporary = mkdtempSync(join(tmpdir(), 'authrealm-site-'));
  try {
    await run([process.execPath, join(ROOT, 'site/build.tsx'), join(temporary, name)]);
    const artefact = join(folder, `${name}.tar.gz`);
    await writeTarGz(artefact, `--directory=${temporary}`, name);
    return [artefact];
  } finally {
    rmSync(temporary, { recursive: true });
  }
});
