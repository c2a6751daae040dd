import { chmodSync, copyFileSync, cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../src/model/version.ts';
import { ROOT, run, runBuild, withTemporaryFolder } from './build.ts';
import { lockedPackages } from './package_lock.ts';

/**
 * Compiles the program, with the files that it reads, into one file for each platform: `authrealm-<version>-linux-x64-glibc` and so
 * on. `--target linux-x64-glibc` builds one of them.
 */

/** The platforms, and the package of npm with the Bun executable of each. */
const RUNTIMES = {
  'linux-x64-glibc': 'bun-linux-x64',
  'linux-x64-musl': 'bun-linux-x64-musl',
  'linux-arm64-glibc': 'bun-linux-aarch64',
  'linux-arm64-musl': 'bun-linux-aarch64-musl',
} as const;

export type BinaryTarget = keyof typeof RUNTIMES;

/** What `programFile()` reads. */
const EMBEDDED = [
  'package.json',
  // Before the first release there are none.
  ...['src/sql/sqlite/migrations', 'src/sql/postgres/migrations'].filter((path) =>
    existsSync(join(ROOT, path)),
  ),
  'dist/console',
];

/** No file of the working folder decides what the runtime does, as in bin/authrealm. */
const GUARDS: readonly string[] = [
  '--no-compile-autoload-dotenv',
  '--no-compile-autoload-bunfig',
  '--no-compile-autoload-tsconfig',
  '--no-compile-autoload-package-json',
];

const OPTIONS: readonly string[] = [
  // Without bytecode a start takes about twice the processor time.
  ...['--format=esm', '--bytecode'],
  // Frames of errors name files and lines of the sources.
  '--sourcemap=inline',
  // Packages in CommonJS format would have the path of this clone, and two clones would build different bytes.
  '--define=__dirname="/authrealm"',
];

/** The name of the file for a platform. */
export function binaryName(target: BinaryTarget): string {
  return `authrealm-${VERSION}-${target}`;
}

/** Builds the binary for a platform in a folder and returns its path. A test replaces `guards`. */
export async function buildBinary(
  target: BinaryTarget,
  folder: string,
  guards: readonly string[] = GUARDS,
): Promise<string> {
  return withTemporaryFolder(async (work) => {
    const built = join(work, binaryName(target));
    const runtime = await fetchRuntime(RUNTIMES[target], work);
    const source = ['src/main.ts', `--target=${RUNTIMES[target]}`, `--compile-executable-path=${runtime}`];
    const assets = stageEmbedded(join(work, 'files')).map((path) => `--asset=${path}`);
    const options = ['--compile', ...OPTIONS, ...guards, ...source, ...assets, `--outfile=${built}`];
    // In the folder of the sources: the source map has their paths relative to the working folder.
    await run([process.execPath, 'build', ...options]);
    const path = join(folder, binaryName(target));
    copyFileSync(built, path);
    return path;
  });
}

/** Writes the binary that Debian runs to a path: copies `built`, a binary of this commit; without it, builds one. */
export async function installBinary(path: string, built?: string): Promise<void> {
  await withTemporaryFolder(async (work) => {
    copyFileSync(built ?? (await buildBinary('linux-x64-glibc', work)), path);
    chmodSync(path, 0o755);
  });
}

/** Copies what is embedded and returns the paths of the copies without parents: Bun embeds a path under its last name. */
function stageEmbedded(folder: string): readonly string[] {
  for (const path of EMBEDDED) {
    if (!existsSync(join(ROOT, path))) throw new Error(`${path} is missing: run npm ci`);
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  }
  return readdirSync(folder).map((name) => join(folder, name));
}

/** The Bun executable of a platform, from npm, in the version and with the digest of package-lock.json. */
async function fetchRuntime(name: string, folder: string): Promise<string> {
  const locked = lockedPackages().find((each) => each.name === `@oven/${name}`);
  if (!locked) throw new Error(`package-lock.json has no @oven/${name}`);
  const spec = `${locked.name}@${locked.version}`;
  const archive = (await run(['npm', 'pack', '--silent', '--pack-destination', folder, spec])).trim();
  const path = join(folder, archive);
  const digest = Bun.SHA512.hash(readFileSync(path), 'base64');
  if (locked.integrity !== `sha512-${digest}`) {
    throw new Error(`${spec} from the registry does not match the digest in package-lock.json`);
  }
  await run(['tar', '-xzf', path, '-C', folder, 'package/bin/bun']);
  return join(folder, 'package/bin/bun');
}

if (import.meta.main) {
  const named = process.argv[process.argv.indexOf('--target') + 1] as BinaryTarget;
  const targets = process.argv.includes('--target') ? [named] : (Object.keys(RUNTIMES) as BinaryTarget[]);
  await runBuild(async (folder) => {
    const paths: string[] = [];
    for (const target of targets) {
      if (!(target in RUNTIMES)) throw new Error(`there is no target ${target}`);
      paths.push(await buildBinary(target, folder));
    }
    return paths;
  });
}
