import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { default as Eleventy, type EleventyConfig, type OutputPage } from '@11ty/eleventy';
import manifest from '../package.json' with { type: 'json' };
import { readOwner, releasedFiles } from '../scripts/release/owner.ts';
import { openApiDocument } from '../src/app/api/document.ts';
import { API_INDEX, ApiNavigation, type ApiPage, apiPages, EXAMPLE_BASE_URL } from './api_pages.tsx';
import { CHAPTER_AFTER_API } from './contents.ts';
import { renderPage, type SiteChapter } from './layout.tsx';
import { extendMarkdown, type MarkdownPage, type Section } from './markdown.tsx';
import { openLinks, type Page, ROOT, readChapters, withInstallation } from './pages.ts';

/**
 * Builds the documentation as a static site in the folder of the command line, by default dist/site. Eleventy renders the
 * markdown; the pages of the API come from the OpenAPI document and the components of the console.
 */

const { version } = manifest;
const DEFAULT_OUT = join(ROOT, 'dist/site');
const OUT = resolve(process.argv[2] ?? DEFAULT_OUT);
if (OUT === resolve(DEFAULT_OUT)) rmSync(OUT, { recursive: true, force: true });
else if (existsSync(OUT) && readdirSync(OUT).length > 0) {
  console.error(`site: ${OUT} is not empty: name a new folder`);
  process.exit(1);
}

const document = openApiDocument(EXAMPLE_BASE_URL, version);
const { api, pages: operations } = apiPages(document);
const documents = readChapters();
const pages = documents.flatMap((chapter) => chapter.pages);
const links = openLinks(pages, releasedFiles());
const chapters: readonly SiteChapter[] = documents.flatMap((chapter) =>
  chapter.title === CHAPTER_AFTER_API ? [{ title: 'API', pages: [API_INDEX] }, chapter] : [chapter],
);

const sections = new Map<string, Section[]>(pages.map(({ path }) => [path, []]));
const byPath = new Map<string, Page>(pages.map((page) => [page.path, page]));
const operationByPath = new Map<string, ApiPage>(operations.map((page) => [page.path, page]));

process.chdir(ROOT);
await new Eleventy('site', OUT, { configPath: false, quietMode: true, config: configure }).write();
for (const [path, source] of [...links.copied, ['license.txt', join(ROOT, 'LICENSE')] as const]) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  cpSync(source, join(OUT, path));
}
writeFileSync(join(OUT, 'api/openapi.json'), `${JSON.stringify(document, null, 2)}\n`);
writeFileSync(join(OUT, 'search.js'), `globalThis.searchEntries = ${JSON.stringify(searchEntries())};\n`);
await bundle();
console.log(`${OUT}: ${pages.length + operations.length} pages`);

function configure(config: EleventyConfig): void {
  config.setTemplateFormats(['md', 'html', '11ty.js']);
  // Without the override a text is a template first, and `{{` in it a mistake.
  for (const { source, path } of pages)
    config.addTemplate(source, readText(source), { ...frameOf(path), templateEngineOverride: 'md' });
  for (const { path, html } of operations)
    config.addTemplate(path, html, { ...frameOf(path), templateEngineOverride: 'html' });
  config.addTemplate('_includes/frame.11ty.js', ({ page, content }) => framed(sitePath(page), content));
  config.amendLibrary('md', (library) => extendMarkdown(library, markdownPage));
}

function frameOf(path: string) {
  return { permalink: path, layout: 'frame.11ty.js' };
}

function sitePath({ outputPath }: OutputPage): string {
  return relative(OUT, resolve(outputPath));
}

function framed(path: string, html: string): string {
  const operation = operationByPath.get(path);
  const page = operation ?? documentAt(path);
  const shown = operation ? chapters.map((each) => withOperations(each, operation)) : chapters;
  return renderPage({ page, chapters: shown, version, html, sections: sections.get(path) ?? [] });
}

/** On the pages of the API, its chapter lists the operations as well. */
function withOperations(chapter: SiteChapter, current: ApiPage): SiteChapter {
  if (!chapter.pages.includes(API_INDEX)) return chapter;
  return { ...chapter, more: <ApiNavigation api={api} current={current} /> };
}

function documentAt(path: string): Page {
  const page = byPath.get(path);
  if (page === undefined) throw new Error(`${path} is no page of the site`);
  return page;
}

function readText(source: string): string {
  return withInstallation(readFileSync(join(ROOT, source), 'utf8'), readOwner());
}

function markdownPage(output: OutputPage): MarkdownPage {
  const page = documentAt(sitePath(output));
  return { resolve: (href) => links.resolve(page, href), sections: sections.get(page.path) ?? [] };
}

/** What the search finds: each part of a document, and each operation. */
function searchEntries(): readonly object[] {
  const parts = documents.flatMap(({ weight, pages: listed }) =>
    listed.flatMap(({ path, title }) =>
      (sections.get(path) ?? []).map(({ anchor, heading, level, text }) => ({
        url: level === 1 ? path : `${path}#${anchor}`,
        ...{ title, heading: level === 1 ? '' : heading, text: text.replaceAll(/\s+/g, ' ').trim(), weight },
      })),
    ),
  );
  const calls = operations.map(({ path, title, text }) => ({
    url: path,
    title,
    heading: '',
    text,
    weight: 1,
  }));
  return [...parts, ...calls];
}

/** The style sheet and the script, each in one file. */
async function bundle(): Promise<void> {
  await Bun.build({
    entrypoints: [join(ROOT, 'site/style/site.css'), join(ROOT, 'site/browser/site.ts')],
    outdir: OUT,
    target: 'browser',
    format: 'iife',
    minify: true,
    naming: '[name].[ext]',
  });
}
