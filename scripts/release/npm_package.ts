import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run, runBuild, writeTarGz } from './build.ts';
import { licenseTexts } from './licenses.ts';

/**
 * Writes the npm package: what `files` of package.json names, with the client library and the licenses written again. npm lists
 * the files and tar writes them, because the modes in an archive of `npm pack` depend on the umask of the checkout.
 */

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
  const names = files.map(({ path }) => path).sort();
  await writeTarGz(archive, '--no-recursion', '--transform=s,^,package/,', ...names);
  return [archive];
});
