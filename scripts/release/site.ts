import { join } from 'node:path';
import manifest from '../../package.json';
import { ROOT, run, runBuild, withTemporaryFolder, writeTarGz } from './build.ts';

/** Builds the documentation and packs it: `bun scripts/release/site.ts FOLDER`. */

await runBuild(async (folder) => {
  const name = `authrealm-${manifest.version}-docs`;
  return withTemporaryFolder(async (temporary) => {
    await run([process.execPath, join(ROOT, 'site/build.ts'), join(temporary, name)]);
    const artefact = join(folder, `${name}.tar.gz`);
    await writeTarGz(artefact, `--directory=${temporary}`, name);
    return [artefact];
  });
});
