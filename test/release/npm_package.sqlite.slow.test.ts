import { expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { licenseTexts } from '../../scripts/release/licenses.ts';
import { findPort } from '../support/daemons.ts';
import { inFolder, runFirstMinutes } from '../support/first_minutes.ts';
import { buildNpmPackage, readManifest, sharedNpmPackage } from '../support/npm_package.ts';
import { runCommand, startCommand } from '../support/processes.ts';
import { walkProgram } from '../support/program_walk.ts';
import { freshFolder } from '../support/service.ts';

/** The npm package of a release, installed from the registry as its users do. */

setDefaultTimeout(300_000);

const manifest = readManifest();
/** A Bun that another package of a project needs. */
const OTHER_BUN = '1.3.0';
const archive = await sharedNpmPackage();
const IMPORTS = "import { connect } from 'authrealm/client'; console.log(typeof connect)";

/** Runs a command in a folder. Throws if it fails. */
async function run(folder: string, ...command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(inFolder(folder, ...command));
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

/** A new project with these dependencies. */
function createProject(manifestOfProject: object = {}): string {
  const folder = join(freshFolder(), 'a project');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, ...manifestOfProject }));
  return folder;
}

const programIn = (project: string) => join(project, 'node_modules/.bin/authrealm');

/** The version of the Bun that serves. */
async function versionOfRuntime(program: string): Promise<string> {
  const options = ['--database', 'sqlite::memory:', '--port', String(findPort())];
  const service = startCommand([program, 'serve', ...options]);
  await service.line(/^listening on /);
  const runtime = readlinkSync(`/proc/${service.process.pid}/exe`);
  const { stdout } = await runCommand([runtime, '--version']);
  expect(await service.stop()).toBe(0);
  return stdout.trim();
}

/** Asserts that an installed program does everything, with the pinned Bun, and leads from the README to a first lookup. */
async function assertRuns(project: string): Promise<void> {
  const program = programIn(project);
  await walkProgram({ command: [program], folder: freshFolder() });
  expect(await versionOfRuntime(program)).toBe(manifest.dependencies.bun as string);
  const { serve, record } = await runFirstMinutes(['npx', '--no', '--', 'authrealm', 'init'], project, {
    npm_config_update_notifier: 'false',
  });
  const [, printed = ''] = /^'(.+)' serve /.exec(serve) ?? [];
  expect(printed).toStartWith(`${project}/node_modules/`);
  expect(printed).toEndWith('/authrealm/bin/authrealm');
  expect(record.username).toBe('jane@example.com');
}

test('the package contains what runs, its license, those of bundled packages, and what operators read', async () => {
  const listed = (await run('/', 'tar', '--list', '--file', archive)).trim().split('\n');
  const top = new Set(listed.map((path) => /^package\/(dist\/[^/]+|[^/]+)/.exec(path)?.[1]));
  expect([...top].sort()).toEqual([
    ...['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'UPGRADING.md', 'bin'],
    ...['dist/client.d.ts', 'dist/client.js', 'dist/console', 'dist/licenses.txt', 'dist/types'],
    ...['examples', 'owner.json', 'package.json', 'src'],
  ]);
  expect(listed).toContain('package/dist/console/index.html');
  const published = JSON.parse(await run('/', 'tar', '-xOf', archive, 'package/package.json'));
  const { scripts: _, devDependencies: __, ...ofUsers } = manifest as unknown as Record<string, unknown>;
  // The values of owner.json are added, and may give it another name.
  expect(published).toMatchObject({ ...ofUsers, name: expect.any(String) });
  expect([published.scripts, published.devDependencies]).toEqual([undefined, undefined]);
  const licenses = await run('/', 'tar', '-xOf', archive, 'package/dist/licenses.txt');
  expect(licenses).toBe(licenseTexts());
});

test('the package built in another folder, with another umask, has the same bytes', async () => {
  const again = await buildNpmPackage(freshFolder(), '077');
  expect(dirname(again)).not.toBe(dirname(archive));
  expect(Bun.hash(readFileSync(again))).toBe(Bun.hash(readFileSync(archive)));
});

test.each([
  ['20.11.0', '10.2.4'],
  ['22.23.3', '10.9.9'],
  ['24.21.0', '11.19.1'],
  ['26.12.1', '12.2.1'],
])('the package installs and runs under Node.js %s with npm %s', async (node, npm) => {
  const tools = createProject();
  const runtime = `node-linux-${process.arch}`;
  await run(tools, 'npm', 'install', '--ignore-scripts', `${runtime}@${node}`, `npm@${npm}`);
  const bin = join(tools, 'node_modules', runtime, 'bin');
  const installer = join(tools, 'node_modules/npm/bin/npm-cli.js');
  const project = createProject();
  // npm looks for the configuration of the machine next to its Node.js.
  const config = `--globalconfig=${(await run('/', 'npm', 'config', 'get', 'globalconfig')).trim()}`;
  const install = 'PATH="$1:$PATH" && shift && node --version && exec node "$@"';
  const output = await run(project, 'sh', '-c', install, 'sh', bin, installer, 'install', config, archive);
  expect(output).toStartWith(`v${node}\n`);
  expect(await run(project, join(bin, 'node'), '--input-type=module', '-e', IMPORTS)).toBe('function\n');
  // What runs on that Bun depends on no Node.js.
  expect(await versionOfRuntime(programIn(project))).toBe(manifest.dependencies.bun as string);
});

test('the package with the name of an owner does everything, and is imported as authrealm if npm installs it as that', async () => {
  const folder = freshFolder();
  await run(folder, 'tar', '-xf', archive);
  const file = join(folder, 'package/package.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/"name": "[^"]+"/, '"name": "@owner/authrealm"'));
  await run(folder, 'tar', '-czf', 'scoped.tgz', 'package');
  const project = createProject();
  await run(project, 'npm', 'install', `authrealm@${folder}/scoped.tgz`);
  await assertRuns(project);
  expect(await run(project, 'node', '--input-type=module', '-e', IMPORTS)).toBe('function\n');
});

test.each([
  ['with install scripts', []],
  ['without install scripts', ['--ignore-scripts']],
] as const)('the package %s runs the pinned Bun when the project has another one', async (_, options) => {
  const project = createProject({
    dependencies: { bun: OTHER_BUN, authrealm: `file:${archive}` },
    allowScripts: { bun: true },
  });
  await run(project, 'npm', 'install', ...options);
  const other = readFileSync(join(project, 'node_modules/bun/package.json'), 'utf8');
  expect(JSON.parse(other).version).toBe(OTHER_BUN);
  await assertRuns(project);
});

test('the package installed by pnpm, which keeps packages elsewhere and runs no install scripts, runs the pinned Bun', async () => {
  const tools = createProject();
  await run(tools, 'npm', 'install', '--ignore-scripts', 'pnpm@10.34.9');
  const installer = join(tools, 'node_modules/pnpm/bin/pnpm.cjs');
  const project = createProject();
  await run(project, 'node', installer, 'add', `--store-dir=${tools}/store`, archive);
  await assertRuns(project);
});

test('the package without its Bun says how to get it', async () => {
  const project = createProject();
  await run(project, 'npm', 'install', '--omit=optional', '--ignore-scripts', archive);
  const { code, stderr } = await runCommand([programIn(project), '--version']);
  expect([code, stderr]).toEqual([
    1,
    `authrealm: Bun ${manifest.dependencies.bun}, which npm installs with this package, is missing: install the package again, or run npm ci in a clone\n`,
  ]);
});
