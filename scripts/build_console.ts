import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BunPlugin } from 'bun';
import { describeForConsole } from './console_description.ts';

/**
 * Builds the console into dist/console/: the pages `index.html` and `docs.html`, and their assets with their content in their names, each
 * with its `.gz` beside it. `npm ci` runs it, as `prepare`. Pages and assets name each other relatively, so that a path
 * prefix works.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'dist/console');
/** Gzipped script, of all pages together. */
const SCRIPT_BYTES_MAX = 120 * 1024;

/** The pages, and what each of them begins with. */
const PAGES = {
  'index.html': {
    ...{ script: 'main', title: 'authrealm' },
    rest: 'The console needs JavaScript. The API does not.',
  },
  'docs.html': {
    ...{ script: 'docs', title: 'authrealm API' },
    rest: 'This page needs JavaScript. What it shows is <a href="openapi.json">openapi.json</a>.',
  },
} as const;

interface Asset {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly isEntry: boolean;
}

const assets = await bundle();
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
const gzippedSizes = new Map(assets.map(({ name, bytes }) => [name, writeCompressed(name, bytes)]));
const template = readFileSync(join(ROOT, 'console/page.html'), 'utf8');
for (const [name, { script, title, rest }] of Object.entries(PAGES)) {
  const page = template
    .replace('{{title}}', title)
    .replace('{{rest}}', rest)
    .replace('{{style}}', `console/${entry('console', '.css').name}`)
    .replace('{{script}}', `console/${entry(script, '.js').name}`)
    .replace('{{chunks}}', chunksOf(entry(script, '.js')).map(preload).join('\n    '));
  writeCompressed(name, new TextEncoder().encode(page));
}

const script = [...gzippedSizes]
  .filter(([name]) => name.endsWith('.js'))
  .reduce((sum, [, size]) => sum + size, 0);
console.log(`console: ${(script / 1024).toFixed(1)} KiB of script, gzipped`);
if (script > SCRIPT_BYTES_MAX) {
  throw new Error(`the console has ${script} bytes of gzipped script, of at most ${SCRIPT_BYTES_MAX}`);
}

async function bundle(): Promise<readonly Asset[]> {
  const { outputs } = await Bun.build({
    entrypoints: [
      join(ROOT, 'console/main.tsx'),
      join(ROOT, 'console/docs.tsx'),
      join(ROOT, 'console/style/console.css'),
    ],
    target: 'browser',
    format: 'esm',
    splitting: true,
    minify: true,
    naming: '[name]-[hash].[ext]',
    jsx: { runtime: 'automatic', importSource: 'preact', development: false },
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [schemaModule()],
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
function schemaModule(): BunPlugin {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  return {
    name: 'schema',
    setup(build) {
      const space = 'schema';
      build.onResolve({ filter: /^authrealm:schema$/ }, ({ path }) => ({ path, namespace: space }));
      build.onLoad({ filter: /.*/, namespace: space }, () => ({
        loader: 'js',
        contents: `export const SCHEMA = ${JSON.stringify(describeForConsole(version))};`,
      }));
    },
  };
}

/** An asset that a page begins with. */
function entry(stem: string, ending: string): Asset {
  const asset = assets.find(
    ({ name, isEntry }) => isEntry && name.startsWith(`${stem}-`) && name.endsWith(ending),
  );
  if (!asset) throw new Error(`the build made no ${stem}${ending}`);
  return asset;
}

/** The names of what a script cannot begin without. */
function chunksOf({ bytes }: Asset): readonly string[] {
  const imports = new Bun.Transpiler({ loader: 'js' }).scanImports(bytes);
  return imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => basename(path));
}

/** So that it is asked for together with the script, and not when that has come. */
function preload(name: string): string {
  return `<link rel="modulepreload" href="console/${name}" />`;
}

/** Writes a file, and beside it the same gzipped; answers the size of that. */
function writeCompressed(name: string, bytes: Uint8Array<ArrayBuffer>): number {
  const gzipped = Bun.gzipSync(bytes, { level: 9 });
  writeFileSync(join(OUT, name), bytes);
  writeFileSync(join(OUT, `${name}.gz`), gzipped);
  return gzipped.length;
}
