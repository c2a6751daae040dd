import manifest from '../package.json' with { type: 'json' };
import { commitSeconds, ROOT } from './release/build.ts';
import { releasedPackages } from './release/package_lock.ts';

/**
 * Prints the software bill of materials of a release as a CycloneDX document: the production packages of package-lock.json, those
 * that browsers load, and with `--development` those of the tests as well. `npm sbom` generates it, with corrections: npm
 * names the component after the folder, its `--omit dev` leaves out packages that both sets need, such as jose, and its time and
 * serial number differ at each run.
 */

export interface Sbom {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp: string; readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

export interface Component {
  readonly 'bom-ref': string;
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope?: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly object[];
}

/** `more` are components that the lock file does not have. Throws if npm fails. */
export async function makeSbom(isWithDevelopment: boolean, more: readonly Component[] = []): Promise<Sbom> {
  const command = ['npm', 'sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  const child = Bun.spawn(command, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const [text, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`npm sbom ended with ${code}: ${errors}`);
  const sbom = JSON.parse(text) as Sbom;
  const { metadata } = sbom;
  const timestamp = new Date((await commitSeconds()) * 1_000).toISOString();
  const named = {
    ...sbom,
    metadata: { ...metadata, timestamp, component: { ...metadata.component, name: manifest.name } },
    components: sbom.components.map((component) => ({ ...component, name: publishedName(component) })),
  };
  const listed = isWithDevelopment ? named : withoutDevelopment(named);
  return withSerialNumber({
    ...listed,
    components: [...listed.components, ...more],
    dependencies: [
      ...listed.dependencies,
      ...more.map((component) => ({ ref: component['bom-ref'], dependsOn: [] })),
    ],
  });
}

/** The name in the registry; npm names a package that is installed under an alias by that. */
function publishedName({ purl }: Component): string {
  return decodeURIComponent(purl.slice('pkg:npm/'.length, purl.lastIndexOf('@')));
}

/** A serial number that follows from the content: the same document has the same number (UUID version 8, RFC 9562). */
function withSerialNumber(sbom: Sbom): Sbom {
  const digest = new Bun.CryptoHasher('sha256')
    .update(JSON.stringify({ ...sbom, serialNumber: '' }))
    .digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x80, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  const parts = [digest.subarray(0, 4), digest.subarray(4, 6), digest.subarray(6, 8), digest.subarray(8, 10)];
  const text = [...parts, digest.subarray(10, 16)].map((part) => part.toString('hex')).join('-');
  return { ...sbom, serialNumber: `urn:uuid:${text}` };
}

function withoutDevelopment(sbom: Sbom): Sbom {
  const used = new Set(releasedPackages().map(({ name, version }) => `${name}@${version}`));
  const root = sbom.metadata.component['bom-ref'];
  const isUsed = (ref: string) => ref === root || used.has(ref);
  return {
    ...sbom,
    components: sbom.components.filter((component) => isUsed(component['bom-ref'])),
    dependencies: sbom.dependencies
      .filter(({ ref }) => isUsed(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isUsed) })),
  };
}

if (import.meta.main) {
  const sbom = await makeSbom(process.argv.includes('--development'));
  process.stdout.write(`${JSON.stringify(sbom, null, 2)}\n`);
}
