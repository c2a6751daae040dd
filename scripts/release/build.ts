import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What the scripts of this folder share. Each writes one kind of artefact into the folder that is its argument. */

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a program to its end and returns its standard output; its standard error is shown. Throws if it fails. */
export async function run(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: options.folder ?? ROOT,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  if (code !== 0) throw new Error(`"${command.slice(0, 3).join(' ')}" exited with code ${code}`);
  return output;
}

export interface RunOptions {
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Works in a temporary folder, which is deleted afterwards. */
export async function withTemporaryFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-release-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The time of the commit in seconds: the time of every file of an artefact, so that a second build has the same bytes. */
export async function commitSeconds(): Promise<number> {
  return Number(await run(['git', 'log', '-1', '--format=%ct']));
}

/** Writes a gzipped tar file whose owners, modes and times do not depend on the checkout. `words` name the files, as for tar. */
export async function writeTarGz(path: string, ...words: readonly string[]): Promise<void> {
  const plain = `${path}.tar`;
  const owner = ['--owner=0', '--group=0', '--numeric-owner'];
  const fixed = [...owner, '--sort=name', '--mode=u=rwX,go=rX', `--mtime=@${await commitSeconds()}`];
  await run(['tar', '--create', `--file=${plain}`, '--format=ustar', ...fixed, ...words]);
  writeFileSync(path, Bun.gzipSync(readFileSync(plain), { level: 9 }));
  rmSync(plain);
}

/**
 * Runs the script from the command line: creates the folder, prints the path of each artefact, or one sentence and exits with 1.
 * `words` are the arguments after the folder.
 */
export async function runBuild(
  build: (folder: string, words: readonly string[]) => Promise<readonly string[]>,
): Promise<void> {
  const [folder, ...words] = process.argv.slice(2);
  try {
    if (folder === undefined) throw new Error('pass the folder to write to');
    mkdirSync(folder, { recursive: true });
    for (const path of await build(resolve(folder), words)) console.log(path);
  } catch (error) {
    console.error(`${basename(process.argv[1] ?? '')}: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
