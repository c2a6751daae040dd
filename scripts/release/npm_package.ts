import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commitSeconds, run, runBuild } from './build.ts';

/**
 * Writes the npm package: what `files` of package.json names, with the client library built again. npm lists the
 * files and tar writes them, because the modes in an archive of `npm pack` depend on the umask of the checkout.
 */

interface PackList {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

await runBuild(async (folder) => {
  await run(['npm', 'run', '--silent', 'build']);
  const [{ filename, files }] = JSON.parse(
    await run(['npm', 'pack', '--dry-run', '--ignore-scripts', '--json']),
  ) as [PackList];
  const archive = join(folder, filename);
  const plain = `${archive}.tar`;
  await run([
    ...[
      'tar',
      '--create',
      `--file=${plain}`,
      '--format=ustar',
      '--no-recursion',
      '--transform=s,^,package/,',
    ],
    ...[
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--mode=u=rwX,go=rX',
      `--mtime=@${await commitSeconds()}`,
    ],
    ...files.map(({ path }) => path).sort(),
  ]);
  writeFileSync(archive, Bun.gzipSync(readFileSync(plain), { level: 9 }));
  rmSync(plain);
  return [archive];
});
