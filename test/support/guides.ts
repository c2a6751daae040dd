import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../../scripts/install_packages.ts';
import { findPort } from './daemons.ts';
import { runCommand } from './processes.ts';
import { freshFolder } from './service.ts';

/** Runs the code blocks of a guide in order, as a reader would. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const readGuide = (guide: string): string => readFileSync(join(ROOT, 'docs/guides', guide), 'utf8');

/** A page without its blocks, generated figures and the targets of its links, in one line. */
export function proseOf(page: string): string {
  return page
    .replaceAll(/^```.*?^```$/gms, '')
    .replaceAll(/<!-- bench.*?<!-- end -->/gs, '')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/\s+/g, ' ');
}

export interface Block {
  readonly language: string;
  readonly text: string;
}

export function blocksOf(guide: string): readonly Block[] {
  const found = [...readGuide(guide).matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return found.map(([, language = '', text = '']) => ({ language, text }));
}

/** The shell commands for a block: itself, or those that save it under the name in its first line. */
function commandsOf({ language, text }: Block): string {
  if (language === 'sh') return text;
  const [, name] = /^\/\/ (\S+)\n/.exec(text) ?? [];
  if (language !== 'js' || name === undefined)
    throw new Error(`neither a shell block nor a named file: ${text}`);
  return `cat >${name} <<'END OF ${name}'\n${text}END OF ${name}\n`;
}

const SEPARATOR = '--- the next block ---';

export interface BlockOutput {
  /** The output of each block. */
  readonly outputs: readonly string[];
  /** The log of the service, including every request; empty where no block starts one. */
  readonly log: string;
}

/** A folder in which a reader installed the published clients and an OpenID provider. */
export async function createFolderWithSdks(): Promise<string> {
  const sdks = 'test/clients/sdks/npm';
  await installPackages(sdks);
  const folder = freshFolder();
  const packages = join(folder, 'node_modules');
  mkdirSync(packages);
  for (const scope of ['@elasticpath', '@epcc-sdk'])
    symlinkSync(join(ROOT, sdks, 'node_modules', scope), join(packages, scope));
  symlinkSync(join(ROOT, 'node_modules/oidc-provider'), join(packages, 'oidc-provider'));
  return folder;
}

/** Runs blocks in one shell, in a folder like a clone after `npm ci`, on other ports and with request logging. */
export async function runBlocks(
  blocks: readonly Block[],
  more: Record<string, string> = {},
  folder: string = freshFolder(),
): Promise<BlockOutput> {
  for (const part of ['bin', 'src', 'package.json', 'node_modules', 'examples'])
    if (!existsSync(join(folder, part))) symlinkSync(join(ROOT, part), join(folder, part));
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const port = String(findPort());
  const ports: Readonly<Record<string, string>> = { 8080: port, 3000: String(findPort()) };
  const script = join(folder, 'blocks.sh');
  const stopAtExit = `trap 'kill \${service:-} \${login:-} \${provider:-} 2>/dev/null || :' EXIT`;
  // The name of the folder may have such digits, too.
  const commands = blocks.map((block) =>
    commandsOf(block).replaceAll(/8080|3000/g, (each) => ports[each] ?? ''),
  );
  writeFileSync(script, [`cd ${folder}`, stopAtExit, ...commands].join(`\necho '${SEPARATOR}'\n`));
  const setting = { AUTHREALM_PORT: port, AUTHREALM_LOG_REQUESTS: 'full' };
  const environment = { ...setting, HOME: folder, TMPDIR: temporary, ...more };
  const { code, stdout, stderr } = await runCommand(['sh', '-eu', script], environment);
  if (code !== 0) throw new Error(`ended with ${code}: ${stdout}${stderr}`);
  const [log] = [...new Bun.Glob('**/serve.log').scanSync(folder)];
  return {
    outputs: stdout.split(`${SEPARATOR}\n`).slice(2),
    log: log === undefined ? '' : await completeLog(join(folder, log)),
  };
}

const WORKER_TIMEOUT = 'did not finish in time';

/** Runs blocks, again in a new folder where the machine was too busy for a password: nothing repeats such a check by itself. */
export async function runBlocksInTime(
  blocks: readonly Block[],
  environment: Record<string, string>,
  createFolder: () => Promise<string>,
): Promise<BlockOutput> {
  for (;;) {
    try {
      const result = await runBlocks(blocks, environment, await createFolder());
      if (!result.outputs.some((output) => output.includes(WORKER_TIMEOUT))) return result;
    } catch (error) {
      if (!String(error).includes(WORKER_TIMEOUT)) throw error;
    }
  }
}

/** The log of a stopping service; resolves once the service has stopped. */
async function completeLog(path: string): Promise<string> {
  for (;;) {
    const log = readFileSync(path, 'utf8');
    if (log.includes('"event":"stopped"')) return log;
    await Bun.sleep(25);
  }
}
