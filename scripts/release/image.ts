import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { VERSION } from '../../src/model/version.ts';
import { installBinary } from './binary.ts';
import { commitSeconds, run, runBuild, withTemporaryFolder } from './build.ts';
import { LICENSES_PATH, licenseTexts } from './licenses.ts';
import { sha256Of } from './provenance.ts';

/**
 * Writes the container image as an OCI layout in one tar file: `bun scripts/release/image.ts FOLDER [BINARY]`. It builds the binary
 * if none is passed. It needs apt and dpkg of Debian 12 and no container engine. The first layer has the files of the Debian
 * packages that the binary needs, the second layer has the binary.
 */

/** The user of the image. It owns /data and nothing else. */
const USER = 10_001;
const DEBIAN = 'bookworm';
const DEBIAN_PACKAGES = ['base-files', 'gcc-12-base', 'libc6', 'libgcc-s1'];
/** Files of the packages that the binary does not open. The copyright files stay. */
const UNUSED = [
  'usr/lib/x86_64-linux-gnu/gconv',
  'usr/share/lintian',
  'usr/share/doc/*/[!c]*',
  'usr/share/doc/*/changelog*',
];
const FILES: Readonly<Record<string, string>> = {
  'etc/passwd': `root:x:0:0::/root:/nonexistent\nauthrealm:x:${USER}:${USER}::/data:/nonexistent\n`,
  'etc/group': `root:x:0:\nauthrealm:x:${USER}:\n`,
  // Without this file the C library asks DNS before /etc/hosts.
  'etc/nsswitch.conf': 'hosts: files dns\n',
};

const NANOSECONDS = 1_000_000_000;
const CONFIG = {
  User: `${USER}:${USER}`,
  ExposedPorts: { '8080/tcp': {} },
  // The growth of the heap as in bin/authrealm.
  Env: ['PATH=/usr/bin', 'AUTHREALM_DATABASE=sqlite:/data/authrealm.db', 'BUN_JSC_heapGrowthMaxIncrease=1'],
  Entrypoint: ['/usr/bin/authrealm'],
  Cmd: ['serve'],
  Volumes: { '/data': {} },
  WorkingDir: '/',
  // The OCI specification reserves this member for Docker, which reads it; other engines ignore it (deploy/README.md, The image).
  Healthcheck: {
    Test: ['CMD', '/usr/bin/authrealm', 'ready'],
    Interval: 30 * NANOSECONDS,
    Timeout: 5 * NANOSECONDS,
    StartPeriod: 30 * NANOSECONDS,
    Retries: 3,
  },
};

/** A content of the layout, which stores it under its digest. */
interface Content {
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

interface Layer extends Content {
  /** The digest before compression. */
  readonly diffId: string;
  readonly description: string;
}

const jsonOf = (kind: string, value: object): Content => ({
  mediaType: `application/vnd.oci.image.${kind}.v1+json`,
  bytes: new TextEncoder().encode(JSON.stringify(value)),
});

const describe = ({ mediaType, bytes }: Content) => ({
  mediaType,
  digest: `sha256:${sha256Of(bytes)}`,
  size: bytes.length,
});

async function buildImage(folder: string, binary?: string): Promise<readonly string[]> {
  return withTemporaryFolder(async (work) => {
    const seconds = await commitSeconds();
    const layers = [await debianLayer(work, seconds), await programLayer(work, seconds, binary)];
    const layout = join(work, 'layout');
    writeLayout(layout, layers, seconds, (await run(['git', 'rev-parse', 'HEAD'])).trim());
    const path = join(folder, `authrealm-${VERSION}-linux-x64.oci.tar`);
    await archive(path, layout, seconds);
    return [path];
  });
}

/** Writes a tar file of the files in a folder: sorted, owned by root, with one time. */
async function archive(
  path: string,
  folder: string,
  seconds: number,
  options: readonly string[] = ['--owner=0', '--group=0', '--create'],
): Promise<void> {
  const names = readdirSync(folder).sort();
  const fixed = ['--format=gnu', '--sort=name', `--mtime=@${seconds}`, '--numeric-owner'];
  await run(['tar', `--file=${path}`, ...fixed, ...options, `--directory=${folder}`, ...names]);
}

function layerFrom(path: string, description: string): Layer {
  const bytes = readFileSync(path);
  return {
    mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
    bytes: gzipSync(bytes),
    diffId: `sha256:${sha256Of(bytes)}`,
    description,
  };
}

/**
 * Extracts the packages without their scripts, as distroless images do. Their control files are in /var/lib/dpkg/status.d, where
 * vulnerability scanners look.
 */
async function debianLayer(work: string, seconds: number): Promise<Layer> {
  const [downloads, root] = [join(work, 'downloads'), join(work, 'debian')];
  const status = join(root, 'var/lib/dpkg/status.d');
  for (const folder of [downloads, status]) mkdirSync(folder, { recursive: true });
  // The user to which apt drops as root cannot enter the folder.
  const options = process.getuid?.() === 0 ? ['-o', 'APT::Sandbox::User=root'] : [];
  await run(['apt-get', '-qq', ...options, 'download', ...DEBIAN_PACKAGES], { folder: downloads });
  const versions: string[] = [];
  for (const file of readdirSync(downloads).sort()) {
    const deb = join(downloads, file);
    const [name = '', version = ''] = (await run(['dpkg-deb', '--show', deb])).trim().split('\t');
    await run(['dpkg-deb', '--extract', deb, root]);
    writeFileSync(join(status, name), await run(['dpkg-deb', '--field', deb]));
    versions.push(`${name} ${version}`);
  }
  const [, codename] =
    /^VERSION_CODENAME=(.*)$/m.exec(readFileSync(join(root, 'usr/lib/os-release'), 'utf8')) ?? [];
  if (codename !== DEBIAN)
    throw new Error(`apt has packages of ${codename}: build the image on Debian 12 (${DEBIAN})`);
  const path = join(work, 'debian.tar');
  const excluded = UNUSED.map((pattern) => `--exclude=${pattern}`);
  await archive(path, root, seconds, ['--owner=0', '--group=0', '--create', ...excluded]);
  return layerFrom(path, versions.join(', '));
}

async function programLayer(work: string, seconds: number, binary?: string): Promise<Layer> {
  const [root, home, path] = [join(work, 'program'), join(work, 'home'), join(work, 'program.tar')];
  for (const folder of ['etc', 'usr/bin', dirname(LICENSES_PATH)])
    mkdirSync(join(root, folder), { recursive: true });
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(root, name), text);
  writeFileSync(join(root, LICENSES_PATH), licenseTexts());
  await installBinary(join(root, 'usr/bin/authrealm'), binary);
  await archive(path, root, seconds);
  mkdirSync(join(home, 'data'), { recursive: true, mode: 0o700 });
  await archive(path, home, seconds, [`--owner=${USER}`, `--group=${USER}`, '--append']);
  return layerFrom(path, `authrealm ${VERSION}`);
}

function writeLayout(folder: string, layers: readonly Layer[], seconds: number, revision: string): void {
  const created = new Date(seconds * 1_000).toISOString();
  const labels = {
    'org.opencontainers.image.title': 'authrealm',
    'org.opencontainers.image.version': VERSION,
    'org.opencontainers.image.revision': revision,
    'org.opencontainers.image.created': created,
    'org.opencontainers.image.licenses': 'Apache-2.0',
  };
  const config = jsonOf('config', {
    ...{ created, architecture: 'amd64', os: 'linux', config: { ...CONFIG, Labels: labels } },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ description }) => ({ created, created_by: description })),
  });
  const manifest = jsonOf('manifest', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: describe(config),
    layers: layers.map(describe),
    annotations: labels,
  });
  const names = {
    'org.opencontainers.image.ref.name': VERSION,
    'io.containerd.image.name': `docker.io/library/authrealm:${VERSION}`,
  };
  const index = jsonOf('index', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      { ...describe(manifest), platform: { architecture: 'amd64', os: 'linux' }, annotations: names },
    ],
  });
  const blobs = join(folder, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  for (const content of [config, manifest, ...layers])
    writeFileSync(join(blobs, sha256Of(content.bytes)), content.bytes);
  writeFileSync(join(folder, 'index.json'), index.bytes);
  writeFileSync(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify([dockerManifest(config, layers)]));
}

/** For `docker load` before Docker 25, which does not read an OCI layout. */
function dockerManifest(config: Content, layers: readonly Layer[]): object {
  const pathOf = ({ bytes }: Content): string => `blobs/sha256/${sha256Of(bytes)}`;
  return { Config: pathOf(config), RepoTags: [`authrealm:${VERSION}`], Layers: layers.map(pathOf) };
}

// The modes of files must not depend on the account that builds.
process.umask(0o022);
await runBuild((folder, [binary]) => buildImage(folder, binary));
