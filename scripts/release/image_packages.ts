import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Component } from '../make_sbom.ts';
import { run, withTemporaryFolder } from './build.ts';

interface Descriptor {
  readonly digest: string;
}

/** The Debian packages in an OCI archive, as components of the SBOM: those that its layers have in /var/lib/dpkg/status.d. */
export async function imagePackages(archive: string): Promise<readonly Component[]> {
  return withTemporaryFolder(async (folder) => {
    await run(['tar', '-xf', archive, '-C', folder]);
    const blob = ({ digest }: Descriptor) => join(folder, 'blobs', digest.replace(':', '/'));
    const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
    const { manifests } = read(join(folder, 'index.json')) as { readonly manifests: readonly Descriptor[] };
    const root = join(folder, 'root');
    mkdirSync(root);
    for (const manifest of manifests)
      for (const layer of (read(blob(manifest)) as { readonly layers: readonly Descriptor[] }).layers)
        await run(['tar', '-xzf', blob(layer), '-C', root]);
    const status = join(root, 'var/lib/dpkg/status.d');
    return readdirSync(status)
      .filter((name) => !name.includes('.'))
      .sort()
      .map((name) => componentOf(readFileSync(join(status, name), 'utf8')));
  });
}

/** Control fields of a package as a component. */
function componentOf(control: string): Component {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1] ?? '';
  const [name, version] = [field('Package'), field('Version')];
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${field('Architecture')}`;
  return { 'bom-ref': purl, type: 'library', name, version, purl };
}
