import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { LICENSES_PATH, licenseTexts } from '../../scripts/release/licenses.ts';
import { VERSION } from '../../src/model/version.ts';
import { buildArtefact, inRoot, openFolder, removeOpenFolders, runTool } from '../support/bare_system.ts';
import { type RunningCommand, runCommand, startCommand, urlOf } from '../support/processes.ts';
import { walkProgram } from '../support/program_walk.ts';
import { sharedBinary } from '../support/shared_artefacts.ts';
import { type ClientSecret, requestToken } from '../support/token_request.ts';

/** The Debian package in a bare Debian, from its installation to its removal. The tests build on each other. */

setDefaultTimeout(600_000);

const DATA = '/var/lib/authrealm';
const CONFIG = '/etc/authrealm/authrealm.conf';
const UNIT = '/lib/systemd/system/authrealm.service';
const EXAMPLE = '/usr/share/doc/authrealm/examples/postgresql.conf';
const SETTING = 'AUTHREALM_RETENTION_DAYS=7\n';
const inside = (path: string): string => join(root, path);

const binary = await sharedBinary('linux-x64-glibc');
const deb = await buildArtefact('deb', binary);
const root = join(openFolder(), 'root');
const release = /^VERSION_CODENAME=(.+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? '';
// The packages come from where this machine gets its own.
const sources = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'].find(existsSync);
await runTool('mmdebstrap', '--quiet', '--variant=apt', release, root, ...(sources ? [sources] : []));
afterAll(removeOpenFolders);

/** Runs a command in the bare system. */
const enter = (...words: readonly string[]): readonly string[] => ['chroot', root, ...words];

const modesOf = (...paths: readonly string[]): readonly number[] =>
  paths.map((path) => statSync(inside(path)).mode & 0o777);

async function install(path: string) {
  copyFileSync(path, inside('/tmp/authrealm.deb'));
  return runCommand(enter('dpkg', '--install', '/tmp/authrealm.deb'));
}

/** The values of a directive of the unit, with the folder of its state. */
const valuesOf = (key: string): readonly string[] =>
  [...readFileSync(inside(UNIT), 'utf8').matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) =>
    value.replaceAll('%S', '/var/lib'),
  );

/** A command as the user and with the environment of the unit: no systemd runs here. */
function asUnit(...command: readonly string[]): readonly string[] {
  const [user = ''] = valuesOf('User');
  return inRoot({ root, user, environment: valuesOf('Environment') }, ...command);
}

const serve = (): RunningCommand =>
  startCommand(asUnit(...(valuesOf('ExecStart')[0] ?? '').split(' '), '--port', '0'));

/** A start of the service grants a token to a client of its database. */
async function expectToken(client: ClientSecret): Promise<void> {
  const service = serve();
  expect(await requestToken(await urlOf(service), client)).not.toBe('');
  expect(await service.stop()).toBe(0);
}

let client: ClientSecret;

test('the installation creates the user and its folder, and writes nothing else', async () => {
  expect(await install(deb)).toMatchObject({ stderr: '', code: 0 });
  const ids = await runTool(...enter('sh', '-c', 'id -u authrealm; id -g authrealm'));
  const { uid: owner, gid: group, mode } = statSync(inside(DATA));
  expect([`${owner}\n${group}\n`, mode & 0o777]).toEqual([ids, 0o700]);
  expect(readdirSync(inside(DATA))).toEqual([]);
  expect(modesOf(CONFIG, UNIT, EXAMPLE, '/usr/bin/authrealm')).toEqual([0o640, 0o644, 0o644, 0o755]);
  expect(statSync(inside(CONFIG)).gid).toBe(group);
  expect(await runTool(...asUnit('authrealm', '--version'))).toBe(`${VERSION}\n`);
  expect(await runTool(...enter('dpkg', '--verify', 'authrealm'))).toBe('');
});

test('the package contains the binary of the release, and the licenses of its packages', () => {
  const hashOf = (path: string) => Bun.hash(readFileSync(path));
  expect(hashOf(inside('/usr/bin/authrealm'))).toBe(hashOf(binary));
  expect(readFileSync(inside(LICENSES_PATH), 'utf8')).toBe(licenseTexts());
});

test('systemd accepts the installed units, with SQLite and with PostgreSQL', async () => {
  // In a folder of this system, because the bare one has none of systemd's own units.
  const folder = openFolder();
  const names = ['authrealm.service', 'authrealm-migrate.service'];
  for (const name of names) {
    const unit = readFileSync(join(dirname(inside(UNIT)), name), 'utf8');
    writeFileSync(
      join(folder, name),
      unit.replace('=/usr/bin/authrealm', `=${inside('/usr/bin/authrealm')}`),
    );
  }
  const override = join(folder, 'authrealm.service.d');
  mkdirSync(override);
  copyFileSync(inside(EXAMPLE), join(override, 'postgresql.conf'));
  const { stderr, code } = await runCommand([
    'systemd-analyze',
    'verify',
    ...names.map((name) => join(folder, name)),
  ]);
  expect([stderr, code]).toEqual(['', 0]);
});

test('the program does everything, from init to backup, as the user of the unit', async () => {
  await walkProgram({ command: asUnit('/usr/bin/authrealm'), folder: DATA, outside: inside(DATA) });
  for (const name of readdirSync(inside(DATA))) rmSync(join(inside(DATA), name));
});

test('an upgrade of the package keeps the database and the settings', async () => {
  const create = ['client', 'create', '--name', 'n', '--scope', 'realms:read', '--json'];
  await runTool(...asUnit('/usr/bin/authrealm', 'init'));
  client = JSON.parse(await runTool(...asUnit('/usr/bin/authrealm', ...create)));
  await expectToken(client);
  writeFileSync(inside(CONFIG), SETTING, { flag: 'a' });
  const next = await withVersion('99.0.0');
  expect(await install(next)).toMatchObject({ stderr: '', code: 0 });
  expect(await runTool(...enter('dpkg-query', '--show', 'authrealm'))).toBe('authrealm\t99.0.0\n');
  expect(readFileSync(inside(CONFIG), 'utf8')).toEndWith(SETTING);
  expect([modesOf(CONFIG), statSync(inside(CONFIG)).gid]).toEqual([[0o640], statSync(inside(DATA)).gid]);
  await expectToken(client);
  // Back to the version that was installed before.
  expect((await install(deb)).code).toBe(0);
  await expectToken(client);
});

/** The package under another version. */
async function withVersion(version: string): Promise<string> {
  const folder = openFolder();
  await runTool('dpkg-deb', '--raw-extract', deb, join(folder, 'files'));
  const control = join(folder, 'files/DEBIAN/control');
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, `Version: ${version}`));
  await runTool('dpkg-deb', '--root-owner-group', '-Znone', '--build', join(folder, 'files'), folder);
  return join(folder, `authrealm_${version}_amd64.deb`);
}

test('a removal keeps data and settings, a purge keeps the data and names it', async () => {
  const data = readdirSync(inside(DATA)).sort();
  expect(data).toContain('authrealm.db.key');
  expect((await runCommand(enter('dpkg', '--remove', 'authrealm'))).code).toBe(0);
  expect(['/usr/bin/authrealm', UNIT, CONFIG].map((path) => existsSync(inside(path)))).toEqual([
    false,
    false,
    true,
  ]);
  expect(readdirSync(inside(DATA)).sort()).toEqual(data);
  const purge = await runCommand(enter('dpkg', '--purge', 'authrealm'));
  expect([purge.code, purge.stderr]).toEqual([
    0,
    expect.stringMatching(/^authrealm: kept \/var\/lib\/authrealm .+\n$/),
  ]);
  expect(existsSync(inside(CONFIG))).toBe(false);
  expect(readdirSync(inside(DATA)).sort()).toEqual(data);
});

test('the package is installed again over the data that its purge kept', async () => {
  expect((await install(deb)).code).toBe(0);
  await expectToken(client);
});

test('a purge removes the folder of a package that was never started', async () => {
  rmSync(inside(DATA), { recursive: true });
  expect((await install(deb)).code).toBe(0);
  expect(await runCommand(enter('dpkg', '--purge', 'authrealm'))).toMatchObject({ stderr: '', code: 0 });
  expect(existsSync(inside(DATA))).toBe(false);
});
