import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BunPlugin } from 'bun';
import { describeForConsole } from './console_description.ts';

/**
 * Builds the console into dist/console/: the pages `index.html` and `docs.html`, and their assets with content hashes in their
 * names, each also as `.gz`. `npm ci` runs it, as `prepare`. Links between pages and assets are relative, so that a path prefix
 * works.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'dist/console');
/** Gzipped scripts of all pages together. */
const SCRIPT_BYTES_MAX = 120 * 1024;

/** The pages, and the entry script, title and noscript text of each. */
const PAGES = {
  'index.html': {
    ...{ script: 'main', title: 'authrealm' },
    noscript: 'The console needs JavaScript. The API does not.',
  },
  'docs.html': {
    ...{ script: 'docs', title: 'authrealm API' },
    noscript: 'This page needs JavaScript. It shows <a href="openapi.json">openapi.json</a>.',
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
for (const [name, { script, title, noscript }] of Object.entries(PAGES)) {
  const page = template
    .replace('{{title}}', title)
    .replace('{{noscript}}', noscript)
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
  throw new Error(`the console has ${script} bytes of gzipped script; the maximum is ${SCRIPT_BYTES_MAX}`);
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
  const schema = describeForConsole();
  return {
    name: 'schema',
    setup(build) {
      const space = 'schema';
      build.onResolve({ filter: /^authrealm:schema$/ }, ({ path }) => ({ path, namespace: space }));
      build.onLoad({ filter: /.*/, namespace: space }, () => ({
        loader: 'js',
        contents: `export const SCHEMA = ${JSON.stringify(schema)};`,
      }));
    },
  };
}

/** The entry point of a page. */
function entry(stem: string, ending: string): Asset {
  const asset = assets.find(
    ({ name, isEntry }) => isEntry && name.startsWith(`${stem}-`) && name.endsWith(ending),
  );
  if (!asset) throw new Error(`the build made no ${stem}${ending}`);
  return asset;
}

/** The names of the chunks that a script imports statically. */
function chunksOf({ bytes }: Asset): readonly string[] {
  const imports = new Bun.Transpiler({ loader: 'js' }).scanImports(bytes);
  return imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => basename(path));
}

/** Lets the browser load the chunk in parallel with the script. */
function preload(name: string): string {
  return `<link rel="modulepreload" href="console/${name}" />`;
}

/** Writes a file and its gzipped copy; returns the gzipped size. */
function writeCompressed(name: string, bytes: Uint8Array<ArrayBuffer>): number {
  const gzipped = Bun.gzipSync(bytes, { level: 9 });
  writeFileSync(join(OUT, name), bytes);
  writeFileSync(join(OUT, `${name}.gz`), gzipped);
  return gzipped.length;
}
