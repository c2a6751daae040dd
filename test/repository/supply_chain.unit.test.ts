import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeSbom } from '../../scripts/make_sbom.ts';
import { BUNDLED_PACKAGES } from '../../scripts/release/package_lock.ts';

/** The packages of a release: exact versions with digests, listed in an SBOM. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));

interface Locked {
  /** The name in the registry, if the package is installed under an alias. */
  readonly name?: string;
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const manifest = read('package.json') as Record<
  'dependencies' | 'devDependencies',
  Record<string, string>
> & {
  readonly name: string;
  readonly version: string;
  readonly allowScripts: Readonly<Record<string, boolean>>;
  readonly engines: { readonly node: string };
};
interface LockFile {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, Locked>>;
}

const lock = read('package-lock.json') as LockFile;
const packagesOf = (file: LockFile) => Object.entries(file.packages).filter(([path]) => path !== '');
const packages = packagesOf(lock);
const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** The folders with lock files: all of them are checked. */
const FOLDERS = [...new Bun.Glob('**/package-lock.json').scanSync(ROOT)]
  .filter((path) => !path.includes('node_modules'))
  .map((path) => path.slice(0, -'package-lock.json'.length))
  .sort();
const OWN_FOLDERS = FOLDERS.filter((folder) => folder !== '');

/** Bun runs the packages of these. */
const WITHOUT_NODE: readonly string[] = ['test/generators/'];

const MAJORS = [21, 22, 23, 24, 25, 26];

/** The packages that do not accept every version of Node that package.json promises. */
function refusalsOf(locked: typeof packages): readonly string[] {
  const [, major = '', minor = '0'] = /^>=(\d+)(?:\.(\d+))?$/.exec(manifest.engines.node) ?? [];
  return [`${major}.${minor}.0`, ...MAJORS.map((each) => `${each}.0.0`)].flatMap((version) =>
    locked
      .filter(([, { engines }]) => !Bun.semver.satisfies(version, engines?.node ?? '*'))
      .map(([path]) => `${nameOf(path)} refuses Node ${version}`),
  );
}

function expectExact({ version, integrity }: Locked): void {
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  const [, digest = ''] = /^sha512-([A-Za-z0-9+/]+={0,2})$/.exec(integrity ?? '') ?? [];
  expect(Buffer.from(digest, 'base64')).toHaveLength(64);
}

describe('package-lock.json', () => {
  test.each(packages)('%s has an exact version and a SHA-512 digest', (_, locked) => expectExact(locked));

  test('package-lock.json names no URL to fetch a package from', () => {
    expect(packages.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
  });

  test('package.json requires every dependency in the exact version of the lock', () => {
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      expect([name, lock.packages[`node_modules/${name}`]?.version]).toEqual([name, version]);
    }
  });

  // npm warns about a package that does not accept its Node, and a reader cannot tell such a warning from a failure.
  test('every package accepts every version of Node that package.json promises', () => {
    expect(refusalsOf(packages)).toEqual([]);
  });

  test('only the bun package runs, and may run, an install script', () => {
    const scripted = packages.filter(([, { hasInstallScript, dev }]) => hasInstallScript && !dev);
    expect(scripted.map(([path]) => nameOf(path))).toEqual(['bun']);
    const allowed = Object.entries(manifest.allowScripts).filter(([, isAllowed]) => isAllowed);
    expect(allowed.map(([name]) => name)).toEqual(['bun']);
  });

  test('the SBOM lists the development packages that browsers load, and no others', () => {
    const imported = ['console/**/*.{ts,tsx}', 'site/browser/**/*.ts']
      .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(ROOT)])
      .flatMap((path) => [
        ...readFileSync(join(ROOT, path), 'utf8').matchAll(/^import .* from '([a-z@][^:']*)'/gm),
      ])
      .map(([, name = '']) => name.split('/')[0] ?? '');
    expect([...new Set(imported)].sort()).toEqual([...BUNDLED_PACKAGES].sort());
  });

  test('a release contains only its dependencies and theirs', () => {
    const { dependencies } = read('package.json') as typeof manifest;
    const seen = new Set<string>();
    const follow = (name: string): void => {
      const locked = lock.packages[`node_modules/${name}`];
      if (seen.has(name) || locked === undefined) return;
      seen.add(name);
      for (const next of Object.keys({ ...locked.dependencies, ...locked.optionalDependencies }))
        follow(next);
    };
    for (const name of Object.keys(dependencies)) follow(name);
    const used = packages.filter(([, { dev }]) => !dev).map(([path]) => nameOf(path));
    expect(used.sort()).toEqual([...seen].sort());
  });
});

describe.each(OWN_FOLDERS)('%spackage-lock.json', (folder) => {
  const own = read(`${folder}package-lock.json`) as LockFile;
  const listed = packagesOf(own);

  test(`every package of ${folder} has an exact version and a SHA-512 digest, and no URL to fetch it from`, () => {
    expect(listed.length).toBeGreaterThan(0);
    for (const [path, locked] of listed) {
      expectExact(locked);
      expect([path, locked.resolved]).toEqual([path, undefined]);
    }
  });

  test(`${folder}package.json requires every dependency in the exact version of the lock, and is private`, () => {
    const { dependencies, ...others } = read(`${folder}package.json`) as typeof manifest;
    for (const [name, version] of Object.entries(dependencies))
      expect([name, own.packages[`node_modules/${name}`]?.version]).toEqual([name, version]);
    expect(others).toMatchObject({ private: true });
    expect(Object.keys(others)).not.toContain('devDependencies');
  });
});

test.each(OWN_FOLDERS.filter((folder) => !WITHOUT_NODE.includes(folder)))(
  'every package of %s accepts every version of Node that package.json promises',
  (folder) => {
    expect(refusalsOf(packagesOf(read(`${folder}package-lock.json`)))).toEqual([]);
  },
);

test('packages of lock files of their own are installed without their scripts', () => {
  const script = readFileSync(join(ROOT, 'scripts/install_packages.ts'), 'utf8');
  expect(script.match(/npm ci [^']+/g)).toEqual([expect.stringContaining(' --ignore-scripts ')]);
});

describe.each([
  ['without development packages', false],
  ['with development packages', true],
] as const)('npm run sbom %s', async (_, isWithDevelopment) => {
  const sbom = await makeSbom(isWithDevelopment);

  test('the SBOM is a CycloneDX document about this release', () => {
    expect(sbom).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: expect.stringMatching(/^1\.[5-9]$/),
      serialNumber: expect.stringMatching(
        /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
      ),
      metadata: {
        component: {
          name: manifest.name,
          version: manifest.version,
          purl: `pkg:npm/${manifest.name}@${manifest.version}`,
        },
      },
    });
  });

  test('the SBOM lists every package of the lock by name, version and digest, and no other', () => {
    const expected = packages
      .filter(([path, { dev }]) => isWithDevelopment || !dev || BUNDLED_PACKAGES.includes(nameOf(path)))
      .map(([path, { version, integrity = '', name = nameOf(path) }]) => {
        const digest = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
        return `${name}@${version} ${digest}`;
      });
    const listed = sbom.components.map(({ name, version, hashes = [] }) => {
      const digest = hashes.find(({ alg }) => alg === 'SHA-512')?.content;
      return `${name}@${version} ${digest}`;
    });
    expect(listed.sort()).toEqual([...new Set(expected)].sort());
  });

  test('the SBOM of one commit is the same each time', async () => {
    expect(await makeSbom(isWithDevelopment)).toEqual(sbom);
  });

  test('every package of the SBOM has a package URL and a license', () => {
    for (const { name, version, purl, licenses = [] } of sbom.components) {
      expect(purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${version}`);
      // One of the development packages declares none.
      if (!isWithDevelopment) expect([name, licenses.length]).toEqual([name, 1]);
    }
  });

  test('the dependency graph of the SBOM contains every package and no unknown one', () => {
    const known = new Set([sbom.metadata.component, ...sbom.components].map((each) => each['bom-ref']));
    expect(sbom.dependencies.length).toBe(known.size);
    for (const { ref, dependsOn } of sbom.dependencies) {
      expect([ref, [ref, ...dependsOn].filter((each) => !known.has(each))]).toEqual([ref, []]);
    }
  });
});
