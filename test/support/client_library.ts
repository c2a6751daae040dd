import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AuthrealmError } from '../../src/client/client.ts';
import { runCommand } from './processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The error of a failed call of the client library. */
export async function errorOf(work: Promise<unknown>): Promise<AuthrealmError> {
  const error: unknown = await work.catch((reason: unknown) => reason);
  if (!(error instanceof AuthrealmError)) throw new Error(`no AuthrealmError: ${error}`);
  return error;
}

/** Builds the client library into a folder, as `npm run build` does into `dist/`. */
export async function buildClientLibrary(folder: string): Promise<void> {
  const { code, stdout, stderr } = await runCommand([
    process.execPath,
    join(ROOT, 'scripts/build_client.ts'),
    folder,
  ]);
  if (code !== 0) throw new Error(stdout + stderr);
}

/** Makes `authrealm/client` importable for the programs in a folder. */
export async function installClientLibrary(folder: string): Promise<void> {
  const installed = join(folder, 'node_modules/authrealm');
  mkdirSync(installed, { recursive: true });
  copyFileSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  await buildClientLibrary(join(installed, 'dist'));
}

/** Makes `authrealm/client` importable with its types, which are made of those of zod. */
export async function installTypedClientLibrary(folder: string): Promise<void> {
  await installClientLibrary(folder);
  symlinkSync(join(ROOT, 'node_modules/zod'), join(folder, 'node_modules/zod'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
}

/** The errors of the compiler for programs of a folder, under strict TypeScript, by default with the types of Node.js. */
export async function compileErrors(
  folder: string,
  files: readonly string[],
  module: string,
  types: readonly string[] = ['node'],
): Promise<string[]> {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: 'es2023',
    lib: ['es2023', 'dom'],
    types,
    typeRoots: [join(ROOT, 'node_modules/@types')],
    module: module === 'bundler' ? 'esnext' : module,
    moduleResolution: module,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { stdout } = await runCommand([tsc, '-p', folder, '--pretty', 'false']);
  return stdout.split('\n').filter((line) => /error TS/.test(line));
}
