import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BunPlugin } from 'bun';
import { WIRE_FORMATS } from '../src/client/wires.ts';

/**
 * Builds the client library into dist/, or the folder in the first argument: one JavaScript file that runs in Node.js, Bun and
 * browsers, and its types. `npm run build` runs it, and so does `npm pack`.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'));

for (const output of ['types', 'client.js', 'client.d.ts']) {
  rmSync(join(DIST, output), { recursive: true, force: true });
}
await writeTypes();
await writeProgram();

/** The wire formats as plain data, without the code that builds and validates them. */
function wireFormatsAsData(): BunPlugin {
  return {
    name: 'wires',
    setup(build) {
      build.onLoad({ filter: /\/client\/wires\.ts$/ }, () => ({
        loader: 'js',
        contents: `export const WIRE_FORMATS = Object.freeze(${JSON.stringify(WIRE_FORMATS)});`,
      }));
    },
  };
}

async function writeProgram(): Promise<void> {
  await Bun.build({
    entrypoints: [join(ROOT, 'src/client/client.ts')],
    outdir: DIST,
    target: 'browser',
    format: 'esm',
    plugins: [wireFormatsAsData()],
  });
}

async function writeTypes(): Promise<void> {
  const options = ['-p', join(ROOT, 'tsconfig.client.json'), '--outDir', join(DIST, 'types')];
  const tsc = Bun.spawn([join(ROOT, 'node_modules/.bin/tsc'), ...options], {
    stdout: 'inherit',
    stderr: 'inherit',
  });
  if ((await tsc.exited) !== 0) throw new Error('the types of the client library could not be written');
  // tsc leaves `.ts` in the import specifiers of declarations; module resolvers look for `.js`.
  for (const path of new Bun.Glob('types/**/*.d.ts').scanSync(DIST)) {
    const file = join(DIST, path);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/(['"]\.{1,2}\/[^'"]+)\.ts(?=['"])/g, '$1.js'));
  }
  writeFileSync(join(DIST, 'client.d.ts'), "export * from './types/client/client.js';\n");
}
