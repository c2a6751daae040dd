import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BunPlugin } from 'bun';
import { describeForConsole } from './console_description.ts';

/**
 * Builds the console into dist/console/: the page `index.html`, and its assets with their content in their names, each
 * with its `.gz` beside it. `npm ci` runs it, as `prepare`. Page and assets name each other relatively, so that a path
 * prefix works.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'dist/console');
/** Gzipped script, of all pages together. */
const SCRIPT_BYTES_MAX = 120 * 1024;

interface Asset {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly isEntry: boolean;
}

const assets = await bundle();
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
const zipped = new Map(assets.map(({ name, bytes }) => [name, keep(name, bytes)]));
const page = readFileSync(join(ROOT, 'console/page.html'), 'utf8')
  .replace('{{script}}', `console/${entry('.js')}`)
  .replace('{{style}}', `console/${entry('.css')}`);
keep('index.html', new TextEncoder().encode(page));

const script = [...zipped].filter(([name]) => name.endsWith('.js')).reduce((sum, [, size]) => sum + size, 0);
console.log(`console: ${(script / 1024).toFixed(1)} KiB of script, gzipped`);
if (script > SCRIPT_BYTES_MAX) {
  throw new Error(`the console has ${script} bytes of gzipped script, of at most ${SCRIPT_BYTES_MAX}`);
}

async function bundle(): Promise<readonly Asset[]> {
  const { outputs } = await Bun.build({
    entrypoints: [join(ROOT, 'console/main.tsx'), join(ROOT, 'console/style/console.css')],
    target: 'browser',
    format: 'esm',
    splitting: true,
    minify: true,
    naming: '[name]-[hash].[ext]',
    jsx: { runtime: 'automatic', importSource: 'preact', development: false },
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [described()],
  });
  return Promise.all(
    outputs.map(async (output) => ({
      name: basename(output.path),
      bytes: new Uint8Array(await output.arrayBuffer()),
      isEntry: output.kind === 'entry-point' || output.path.endsWith('.css'),
    })),
  );
}

/** The descriptions of resources, as plain data. */
function described(): BunPlugin {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  return {
    name: 'described',
    setup(build) {
      const space = 'described';
      build.onResolve({ filter: /^authrealm:described$/ }, ({ path }) => ({ path, namespace: space }));
      build.onLoad({ filter: /.*/, namespace: space }, () => ({
        loader: 'js',
        contents: `export const DESCRIBED = ${JSON.stringify(describeForConsole(version))};`,
      }));
    },
  };
}

/** The name of the asset that the page begins with. */
function entry(ending: string): string {
  const found = assets.find(({ name, isEntry }) => isEntry && name.endsWith(ending));
  if (!found) throw new Error(`the build made no ${ending}`);
  return found.name;
}

/** Writes a file, and beside it the same gzipped; answers the size of that. */
function keep(name: string, bytes: Uint8Array<ArrayBuffer>): number {
  const small = Bun.gzipSync(bytes, { level: 9 });
  writeFileSync(join(OUT, name), bytes);
  writeFileSync(join(OUT, `${name}.gz`), small);
  return small.length;
}
