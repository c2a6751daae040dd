import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { makeSbom } from '../make_sbom.ts';
import { binaryName } from './binary.ts';
import { ROOT, run } from './build.ts';
import { imagePackages } from './image_packages.ts';
import { type Owner, readManifest, readOwner, releasedFiles } from './owner.ts';
import { makeProvenance, sha256Of } from './provenance.ts';
import { findObstacles, releaseNotes } from './release_checks.ts';

/**
 * Builds a release into dist/release/ from a clean commit with its tag, and prints the commands that publish it: it publishes
 * nothing (docs/releasing.md). `npm run release -- NAME…` builds only these artefacts, from any commit: they are no release.
 */

const FOLDER = join(ROOT, 'dist', 'release');

/** The scripts of this folder that each write an artefact, in the order in which they run. */
const ARTEFACTS: readonly string[] = ['npm_package', 'binary', 'image', 'deb', 'site', 'licenses'];

/** Those that contain the binary: they get the one that was built before them. */
const WITH_BINARY: readonly string[] = ['image', 'deb'];

/** Builds artefacts into an empty folder, prints the paths of their files and returns the names. */
async function build(names: readonly string[]): Promise<string[]> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  // An older console in dist/ must not enter an artefact.
  await run([process.execPath, 'scripts/build_console.ts']);
  const files: string[] = [];
  for (const name of ARTEFACTS.filter((each) => names.includes(each))) {
    console.error(`release: builds ${name}`);
    const binary = binaryName('linux-x64-glibc');
    const words = WITH_BINARY.includes(name) && files.includes(binary) ? [join(FOLDER, binary)] : [];
    const output = await run([process.execPath, `scripts/release/${name}.ts`, FOLDER, ...words]);
    const paths = output.split('\n').filter(Boolean);
    for (const path of paths) console.log(relative(ROOT, path));
    files.push(...paths.map((path) => basename(path)));
  }
  return files;
}

async function release(): Promise<void> {
  const manifest = readManifest();
  const owner = readOwner();
  const obstacles = await findObstacles(manifest, owner);
  if (obstacles.length > 0) throw new Error(obstacles.join('\nrelease: '));
  const files = await build(ARTEFACTS);
  const stem = `${manifest.name}-${manifest.version}`;
  const tag = `v${manifest.version}`;
  const write = (name: string, text: string) => {
    writeFileSync(join(FOLDER, name), text);
    console.log(relative(ROOT, join(FOLDER, name)));
    files.push(name);
  };
  const images = files.filter((file) => file.endsWith('.oci.tar')).map((file) => join(FOLDER, file));
  const debian = (await Promise.all(images.map(imagePackages))).flat();
  write(`${stem}.cdx.json`, asJson(await makeSbom(false, debian)));
  write(`${stem}.intoto.json`, asJson(await makeProvenance(tag, owner, files.map(subject))));
  const sums = files.map(subject).map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  write('SHA256SUMS', sums.join(''));
  writeFileSync(join(FOLDER, 'NOTES.md'), withAbsoluteLinks(releaseNotes(manifest.version) ?? ''));
  printPublishing(manifest.version, owner, files);
}

function subject(name: string) {
  return { name, sha256: sha256Of(readFileSync(join(FOLDER, name))) };
}

function asJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The links of CHANGELOG.md are relative to the repository; the notes are shown elsewhere. */
function withAbsoluteLinks(notes: string): string {
  return `${notes.replace(/\]\((?!https:)/g, `](${releasedFiles()}/`)}\n`;
}

/** Prints the commands that publish the release. Nothing runs them. */
function printPublishing(version: string, { repository }: Owner, files: readonly string[]): void {
  const paths = files.map((file) => relative(ROOT, join(FOLDER, file)));
  const pathOf = (ending: string) => paths.find((path) => path.endsWith(ending));
  const notes = relative(ROOT, join(FOLDER, 'NOTES.md'));
  const upload = repository.startsWith('https://github.com/')
    ? `gh release create v${version} --verify-tag --notes-file ${notes} ${paths.join(' ')}`
    : `# Upload to a release v${version} of ${repository}, with ${notes} as its text: ${paths.join(' ')}`;
  console.log(`
Nothing is published. To publish, run these commands; REGISTRY is your container registry:

git push ${repository} v${version}
npm publish --access public ./${pathOf('.tgz')}
skopeo copy oci-archive:${pathOf('.oci.tar')} docker://REGISTRY/authrealm:${version}
${upload}`);
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !ARTEFACTS.includes(name));
if (unknown.length > 0) {
  console.error(`release: no artefact ${unknown.join(', ')}; known are ${ARTEFACTS.join(', ')}`);
  process.exitCode = 2;
} else {
  await (names.length === 0 ? release() : build(names)).catch((error: Error) => {
    console.error(`release: ${error.message}`);
    process.exitCode = 1;
  });
}
