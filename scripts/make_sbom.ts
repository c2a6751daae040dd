import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Prints the software bill of materials of a release as a CycloneDX document: the production packages of package-lock.json, and
 * with `--development` those of the tests as well. `npm sbom` generates it, with two corrections: npm names the component after
 * the folder, and its `--omit dev` leaves out packages that both sets need, such as jose.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface Sbom {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly serialNumber: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

export interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope?: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly object[];
}

/** Throws if npm fails. */
export async function makeSbom(isWithDevelopment: boolean): Promise<Sbom> {
  const command = ['npm', 'sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  const child = Bun.spawn(command, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const [text, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`npm sbom ended with ${code}: ${errors}`);
  const sbom = JSON.parse(text) as Sbom;
  const { name } = read('package.json') as { name: string };
  const { metadata } = sbom;
  const named = { ...sbom, metadata: { ...metadata, component: { ...metadata.component, name } } };
  return isWithDevelopment ? named : withoutDevelopment(named);
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly dev?: boolean }>>;
}

function withoutDevelopment(sbom: Sbom): Sbom {
  const { packages } = read('package-lock.json') as Lock;
  const used = new Set(
    Object.entries(packages)
      .filter(([, { dev }]) => !dev)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
  );
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

function read(path: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}

if (import.meta.main) {
  const sbom = await makeSbom(process.argv.includes('--development'));
  process.stdout.write(`${JSON.stringify(sbom, null, 2)}\n`);
}
