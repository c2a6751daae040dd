import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run, runBuild, withTemporaryFolder, writeTarGz } from './build.ts';
import { licenseTexts } from './licenses.ts';
import { readOwner, repositoryPage } from './owner.ts';

/**
 * Writes the npm package: what `files` of package.json names, with the client library and the licenses written again. npm lists
 * the files and tar writes them, because the modes in an archive of `npm pack` depend on the umask of the checkout.
 */

const MANIFEST = 'package.json';

/** package.json with what the owner filled in, and without the scripts and development dependencies, which only a clone uses. */
function publishedManifest(): string {
  const manifest = JSON.parse(readFileSync(join(ROOT, MANIFEST), 'utf8'));
  const { repository, registryName, site } = readOwner();
  const ofOwner = {
    ...(registryName === '' ? {} : { name: registryName }),
    ...(repository === '' ? {} : { repository, bugs: repositoryPage('/issues') }),
    ...(site === '' ? {} : { homepage: site }),
  };
  const ofClones = { scripts: undefined, devDependencies: undefined };
  return `${JSON.stringify({ ...manifest, ...ofOwner, ...ofClones }, null, 2)}\n`;
}

interface PackList {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

await runBuild(async (folder) => {
  await run(['npm', 'run', '--silent', 'build']);
  // The console contains packages.
  writeFileSync(join(ROOT, 'dist/licenses.txt'), licenseTexts());
  const [{ filename, files }] = JSON.parse(
    await run(['npm', 'pack', '--dry-run', '--ignore-scripts', '--json']),
  ) as [PackList];
  const archive = join(folder, filename);
  const names = files.map(({ path }) => path).filter((path) => path !== MANIFEST);
  await withTemporaryFolder(async (own) => {
    writeFileSync(join(own, MANIFEST), publishedManifest());
    const ofFolders = ['-C', own, MANIFEST, '-C', ROOT, ...names];
    await writeTarGz(archive, '--no-recursion', '--transform=s,^,package/,', ...ofFolders);
  });
  return [archive];
});
