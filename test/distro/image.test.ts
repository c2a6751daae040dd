import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { chownSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { imagePackages } from '../../scripts/release/image_packages.ts';
import { LICENSES_PATH, licenseTexts } from '../../scripts/release/licenses.ts';
import { VERSION } from '../../src/model/version.ts';
import { buildArtefact, inRoot, openFolder, removeOpenFolders, runTool } from '../support/bare_system.ts';
import { type RunningCommand, runCommand, startCommand, urlOf } from '../support/processes.ts';
import { walkProgram } from '../support/program_walk.ts';
import { sharedBinary } from '../support/shared_artefacts.ts';

/** The container image, run as its user in a root that it cannot write to, without a temporary folder. */

setDefaultTimeout(600_000);

const USER = 10_001;

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface ImageConfig {
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly WorkingDir: string;
    readonly Healthcheck: { readonly Test: readonly string[] };
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const read = (path: string) => JSON.parse(readFileSync(join(layout, path), 'utf8'));

/** The content that a descriptor names. Throws where it has another digest or size. */
function contentOf({ digest, size }: Descriptor): Buffer {
  const bytes = readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
  expect([digestOf(bytes), bytes.length]).toEqual([digest, size]);
  return bytes;
}

const archive = await buildArtefact('image', await sharedBinary('linux-x64-glibc'));
/** The root file system of a container. */
/** The layout, unpacked. */
const [layout, root] = [openFolder(), openFolder()];
await runTool('tar', '-xf', archive, '-C', layout);
const manifest = JSON.parse(contentOf(read('index.json').manifests[0]).toString());
const image = JSON.parse(contentOf(manifest.config).toString()).config;
for (const { digest } of manifest.layers as Descriptor[])
  await runTool('tar', '-xzpf', join(layout, 'blobs', digest.replace(':', '/')), '-C', root);
afterAll(removeOpenFolders);

/** The command that runs the entry point of the image with a volume at /data, to which the words of a command are added. */
const container = (volume: string, user = USER): readonly string[] =>
  inRoot({ root, user, environment: image.Env, volume }, ...image.Entrypoint);

const serve = (volume: string, user = USER): RunningCommand =>
  startCommand([...container(volume, user), ...image.Cmd, '--port', '0']);

test('the SBOM of a release lists the Debian packages of the image', async () => {
  const listed = await imagePackages(archive);
  expect(listed.map(({ name }) => name)).toEqual(readdirSync(join(root, 'var/lib/dpkg/status.d')).sort());
  expect(listed.map(({ purl }) => purl)).toContainEqual(
    expect.stringMatching(/^pkg:deb\/debian\/libc6@2\..+\?arch=amd64$/),
  );
});

test('every content of the image has the digest and the size of its descriptor', () => {
  expect(read('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' });
  const [named, ...others] = read('index.json').manifests as Descriptor[];
  if (named === undefined) throw new Error('the index names no manifest');
  const manifest = JSON.parse(contentOf(named).toString()) as {
    readonly config: Descriptor;
    readonly layers: readonly Descriptor[];
  };
  const { rootfs } = JSON.parse(contentOf(manifest.config).toString()) as ImageConfig;
  expect(manifest.layers.map((layer) => digestOf(gunzipSync(contentOf(layer))))).toEqual([
    ...rootfs.diff_ids,
  ]);
  const contents = [named, manifest.config, ...manifest.layers].map(({ digest }) => digest.slice(7));
  expect([others, readdirSync(join(layout, 'blobs/sha256')).sort()]).toEqual([[], contents.sort()]);
});

test('the image runs as a user that owns /data and no other file', async () => {
  expect([image.User, image.Entrypoint, image.Cmd]).toEqual([
    `${USER}:${USER}`,
    ['/usr/bin/authrealm'],
    ['serve'],
  ]);
  const owned = await runTool('find', root, '-not', '-user', 'root', '-printf', '%P %U:%G %m\n');
  expect(owned).toBe(`data ${USER}:${USER} 700\n`);
  const writable = await runTool('find', root, '-perm', '/002', '-not', '-type', 'l', '-printf', '%P\n');
  expect(writable.trim().split('\n').sort()).toEqual(['tmp', 'var/lock', 'var/tmp']);
});

test('a second build of the binary and the image has the same bytes', async () => {
  expect(digestOf(readFileSync(await buildArtefact('image')))).toBe(digestOf(readFileSync(archive)));
});

test('the image does everything, from init to backup, with a read-only root', async () => {
  const volume = openFolder(USER);
  await walkProgram({ command: container(volume), folder: '/data', outside: volume });
});

test('the image serves as another user, and its health check follows the service', async () => {
  const volume = openFolder(1_234);
  const service = serve(volume, 1_234);
  const { port } = new URL(await urlOf(service));
  const check = [...container(volume, 1_234), ...image.Healthcheck.Test.slice(2), '--port', port];
  expect(image.Healthcheck.Test.slice(0, 2)).toEqual(['CMD', ...image.Entrypoint]);
  expect((await runCommand(check)).code).toBe(0);
  expect(await service.stop()).toBe(0);
  expect((await runCommand(check)).code).toBe(1);
  expect(statSync(join(volume, 'authrealm.db')).uid).toBe(1_234);
});

test('the image rejects a volume of another user in one sentence that names the user', async () => {
  const closed = openFolder(1_234);
  for (const volume of [closed, openFolder()]) {
    const { stderr, code } = await runCommand([...container(volume), 'serve', '--port', '0']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^authrealm: .*user 10001 may not create files in \/data: change its owner.*\n$/),
    ]);
  }
});

test('the image starts again after it was killed at any moment of its first start', async () => {
  const volume = openFolder(USER);
  const folderOf = (name: string): string => {
    const folder = join(volume, name);
    mkdirSync(folder, { mode: 0o700 });
    chownSync(folder, USER, USER);
    return folder;
  };
  const begin = performance.now();
  const measured = serve(folderOf('measured'));
  await urlOf(measured);
  const startMs = performance.now() - begin;
  expect(await measured.stop()).toBe(0);
  const attempts = 12;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const folder = folderOf(String(attempt));
    const killed = serve(folder);
    await Bun.sleep((attempt / attempts) * startMs);
    killed.process.kill('SIGKILL');
    await killed.process.exited;
    const service = serve(folder);
    const answer = await fetch(`${await urlOf(service)}/readyz`);
    expect([attempt, answer.status]).toEqual([attempt, 200]);
    expect(await service.stop()).toBe(0);
  }
});

test('the image contains the licenses of its packages', () => {
  expect(readFileSync(join(root, LICENSES_PATH), 'utf8')).toBe(licenseTexts());
});

test('the image names its release', () => {
  const [{ annotations }] = read('index.json').manifests;
  expect(annotations['org.opencontainers.image.ref.name']).toBe(VERSION);
  expect(read('manifest.json')[0].RepoTags).toEqual([`authrealm:${VERSION}`]);
});
