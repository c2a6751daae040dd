import { afterAll, expect, test } from 'bun:test';
import { readdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sbom } from '../../scripts/make_sbom.ts';
import { VERSION } from '../../src/model/version.ts';
import { freshFolder } from '../support/folder.ts';
import { runCommand } from '../support/processes.ts';
import { createReleaseClone, REPOSITORY, TAG } from '../support/release_clone.ts';

/**
 * The files of a release whose only artefacts are the npm package and the licenses, the quickest ones; `npm run soak -- --only
 * release` builds all of them.
 */

const PACKAGE = `authrealm-${VERSION}.tgz`;
const LICENSES = `authrealm-${VERSION}-licenses.txt`;
const SBOM = `authrealm-${VERSION}.cdx.json`;
const PROVENANCE = `authrealm-${VERSION}.intoto.json`;

const release = (from: string, ...names: readonly string[]) =>
  runCommand([process.execPath, join(from, 'scripts/release/release.ts'), ...names], { HOME: freshFolder() });

const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const sha256 = (name: string) =>
  new Bun.CryptoHasher('sha256').update(readFileSync(join(folder, name))).digest('hex');
const check = (from: string) =>
  runCommand(['sh', '-c', `cd "${from}" && sha256sum --check --ignore-missing SHA256SUMS`]);

const clone = await createReleaseClone();
const folder = join(clone.folder, 'dist/release');
clone.edit('scripts/release/release.ts', (text) =>
  text.replace(/(const ARTEFACTS.*=) .*;/, "$1 ['npm_package', 'licenses'];"),
);
await clone.git('commit', '--quiet', '--all', '--message', 'Release less');
await clone.git('tag', '--force', TAG);
const { stdout, code } = await release(clone.folder);
expect([code, stdout]).toEqual([0, expect.stringContaining(`git push ${REPOSITORY} ${TAG}\n`)]);

afterAll(() => clone.remove());

test('a release consists of its artefacts, checksums, SBOM, provenance and notes', () => {
  const names = ['NOTES.md', 'SHA256SUMS', PACKAGE, LICENSES, SBOM, PROVENANCE];
  expect(readdirSync(folder).sort()).toEqual(names.sort());
  expect(read('NOTES.md')).toContain(`](${REPOSITORY}/blob/${TAG}/UPGRADING.md`);
});

test('the licenses of a release name every package of its SBOM but the runtime, each with a license text', () => {
  const [program = '', ...packages] = read(LICENSES).split(/^---- (?=.+ ----$)/m);
  expect(program).toContain('Apache License\n');
  const { components } = JSON.parse(read(SBOM)) as Sbom;
  const expected = components.filter(({ name }) => !/^(bun$|@oven\/)/.test(name));
  expect(packages.map((text) => text.split(' ----\n')[0]).sort()).toEqual(
    expected.map(({ name, version }) => `${name} ${version}`).sort(),
  );
  expect(packages.filter((text) => !/\b(permission|conditions|public domain)\b/i.test(text))).toEqual([]);
});

test('the provenance names every file by its digest, the commit, the lock file and the programs', async () => {
  const statement = JSON.parse(read(PROVENANCE));
  expect(statement).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    predicateType: 'https://slsa.dev/provenance/v1',
    subject: [PACKAGE, LICENSES, SBOM].map((name) => ({
      name,
      digest: { sha256: sha256(name) },
    })),
    predicate: {
      buildDefinition: {
        buildType: expect.stringMatching(/^https:/),
        externalParameters: { source: `git+${REPOSITORY}@refs/tags/${TAG}` },
        resolvedDependencies: [
          { digest: { gitCommit: (await clone.git('rev-parse', TAG)).trim() } },
          { name: 'package-lock.json', digest: { sha256: sha256('../../package-lock.json') } },
          { name: 'site/package-lock.json', digest: { sha256: sha256('../../site/package-lock.json') } },
        ],
      },
      runDetails: {
        builder: { version: { bun: Bun.version, npm: expect.any(String), node: expect.any(String) } },
      },
    },
  });
});

test('sha256sum accepts the files of a release and reports one that was cut short', async () => {
  const { stdout, code } = await check(folder);
  expect([code, stdout.trim().split('\n').sort()]).toEqual([
    0,
    [PACKAGE, LICENSES, SBOM, PROVENANCE].map((name) => `${name}: OK`).sort(),
  ]);
  const download = freshFolder();
  for (const name of ['SHA256SUMS', PACKAGE])
    writeFileSync(join(download, name), readFileSync(join(folder, name)));
  truncateSync(join(download, PACKAGE), 100_000);
  const found = await check(download);
  expect([found.code, found.stdout]).toEqual([1, `${PACKAGE}: FAILED\n`]);
});

test('a second release of the tag, from another folder, has the same bytes', async () => {
  // At the same depth: the hashes of the console's files depend on the relative path to node_modules, here a symbolic link.
  const other = `${clone.folder}-another`;
  await clone.git('clone', '--quiet', '--branch', TAG, clone.folder, other);
  symlinkSync(join(clone.folder, 'node_modules'), join(other, 'node_modules'));
  expect((await release(other)).code).toBe(0);
  const contents = (from: string) =>
    readdirSync(from)
      .sort()
      .map((name) => [name, readFileSync(join(from, name), name === PACKAGE ? 'base64' : 'utf8')]);
  const again = contents(join(other, 'dist/release'));
  rmSync(other, { recursive: true });
  expect(again).toEqual(contents(folder));
}, 300_000);

test('a named artefact is built from any commit, without a tag and values of the owner, and is no release', async () => {
  const other = await createReleaseClone();
  other.setOwner({ repository: '', registryName: '', contact: '', site: '' });
  rmSync(join(other.folder, 'src/sql/sqlite/migrations'), { recursive: true });
  await other.git('tag', '--delete', TAG);
  const { stdout, code } = await release(other.folder, 'licenses', 'npm_package');
  const built = readdirSync(join(other.folder, 'dist/release'));
  other.remove();
  expect([code, stdout]).toEqual([0, `dist/release/${PACKAGE}\ndist/release/${LICENSES}\n`]);
  expect(built.sort()).toEqual([LICENSES, PACKAGE].sort());
}, 300_000);
