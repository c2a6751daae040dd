import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ApiDocument, apiOf } from '../../console/openapi/document.ts';
import manifest from '../../package.json';
import { releasedFiles } from '../../scripts/release/owner.ts';
import { NOT_ON_THE_SITE } from '../../site/contents.ts';
import { openLinks, readChapters, withInstallation } from '../../site/pages.ts';
import { freshFolder } from '../support/folder.ts';
import { runCommand } from '../support/processes.ts';
import { sharedSite } from '../support/shared_artefacts.ts';

/** The documentation as a static site, built as `npm run site` builds it. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface SitePage {
  readonly ids: ReadonlySet<string>;
  readonly links: readonly string[];
  /** What the browser fetches by itself. */
  readonly resources: readonly string[];
  readonly text: string;
}
const pages = new Map<string, SitePage>();

const site = await sharedSite();
for (const path of new Bun.Glob('**/*.html').scanSync(site)) pages.set(path, await readPage(path));

async function readPage(path: string): Promise<SitePage> {
  const ids = new Set<string>();
  const links: string[] = [];
  const resources: string[] = [];
  const texts: string[] = [];
  const rewriter = new HTMLRewriter()
    .on('[id]', { element: (each) => void ids.add(each.getAttribute('id') ?? '') })
    .on('a[href]', { element: (each) => void links.push(each.getAttribute('href') ?? '') })
    .on('[src]', { element: (each) => void resources.push(each.getAttribute('src') ?? '') })
    .on('link[href]', { element: (each) => void resources.push(each.getAttribute('href') ?? '') })
    .on('main', { text: (part) => void texts.push(part.text) });
  await rewriter.transform(new Response(readFileSync(join(site, path)))).text();
  return { ids, links, resources, text: texts.join('') };
}

test('npm run site refuses a folder with files in it, and deletes nothing', async () => {
  const folder = freshFolder();
  writeFileSync(join(folder, 'mine.txt'), '');
  expect(await runCommand([process.execPath, join(ROOT, 'site/build.ts'), folder])).toMatchObject({
    stderr: `site: ${folder} is not empty: name a new folder\n`,
    code: 1,
  });
  expect(readdirSync(folder)).toEqual(['mine.txt']);
});

test('every link of the site leads to a page and a heading of it, or to another site by https', () => {
  const broken = [...pages].flatMap(([path, { links }]) =>
    links
      .filter((link) => !link.startsWith('https://') && !isTarget(path, link))
      .map((link) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
  expect(pages.size).toBeGreaterThan(150);
});

function isTarget(from: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? from : posix.join(posix.dirname(from), path);
  if (anchor === undefined) return existsSync(join(site, target));
  return pages.get(target)?.ids.has(decodeURIComponent(anchor)) === true;
}

test('every page loads only files of the site', () => {
  for (const [path, { resources }] of pages)
    for (const each of resources.filter((resource) => !resource.startsWith('data:')))
      expect([path, each, isTarget(path, each)]).toEqual([path, each, true]);
  expect(readFileSync(join(site, 'site.css'), 'utf8').match(/url\(|@import/g)).toBeNull();
});

test('the menu of every page leads to every document', () => {
  const files = [...new Bun.Glob('docs/**/*.md').scanSync(ROOT)];
  const sources = files.filter((path) => !path.startsWith(NOT_ON_THE_SITE)).length;
  for (const [path, { links }] of pages) {
    const targets = new Set(links.map((link) => posix.join(posix.dirname(path), link.split('#')[0] ?? '')));
    expect([path, targets.size >= sources]).toEqual([path, true]);
  }
});

test('a link to a file that is not in the site leads to the repository, or is plain text while none is set', () => {
  const source = 'test/repository/tidy.unit.test.ts';
  const { links, text } = pages.get('architecture.html') ?? { links: [], text: '' };
  expect(text).toContain(source);
  const files = releasedFiles();
  expect(links.filter((link) => link.endsWith(source))).toEqual(
    files === undefined ? [] : [`${files}/${source}`],
  );
});

test('the front page runs the package of the registry once the owner has named it, and a clone before', () => {
  const text = readFileSync(join(ROOT, 'docs/index.md'), 'utf8');
  expect(withInstallation(text, { registryName: '' })).toContain('npm ci && npm run demo');
  const published = withInstallation(text, { registryName: '@owner/authrealm' });
  expect(published).toContain('npx --yes -- @owner/authrealm demo');
  expect(published).toContain('For programs: `npm install authrealm@npm:@owner/authrealm`.');
  expect(published).not.toContain('clone');
});

test('a link of a page leads to another page, a copied file, an https address or the repository', () => {
  const all = readChapters().flatMap((chapter) => chapter.pages);
  const page = all.find(({ source }) => source === 'docs/guides/keys.md');
  if (page === undefined) throw new Error('docs/guides/keys.md is no page of the site');
  const links = openLinks(all, 'https://forge.example/us/authrealm/blob/v1.0.0');
  const targets = {
    '../../README.md#get-it': '../index.html#get-it',
    'network.md': 'network.html',
    '#signing-keys': '#signing-keys',
    '../console.png': '../console.png',
    '../../deploy/compose.yaml': '../deploy/compose.yaml',
    'https://example.com/': 'https://example.com/',
    '../../bunfig.toml': 'https://forge.example/us/authrealm/blob/v1.0.0/bunfig.toml',
    '../decisions/README.md': 'https://forge.example/us/authrealm/blob/v1.0.0/docs/decisions/README.md',
  };
  expect(Object.keys(targets).map((href) => links.resolve(page, href))).toEqual(Object.values(targets));
  expect([...links.copied.keys()]).toEqual(['console.png', 'deploy/compose.yaml']);
  expect(openLinks(all, undefined).resolve(page, '../../bunfig.toml')).toBeUndefined();
  expect(() => links.resolve(page, 'missing.md')).toThrow('guides/missing.md does not exist');
});

describe('the pages of the API', () => {
  test('every operation has a page with a request in four languages and an example of its body', async () => {
    const document = JSON.parse(readFileSync(join(site, 'api/openapi.json'), 'utf8')) as ApiDocument;
    const operations = [...apiOf(document).operations.values()];
    expect(operations.length).toBeGreaterThan(60);
    for (const { id, path, responses } of operations) {
      const { text = '' } = pages.get(`api/${id}.html`) ?? {};
      const words = ['curl ', 'await fetch(', 'urllib.request.urlopen(', 'http.NewRequest('];
      expect([id, words.filter((word) => !text.includes(word))]).toEqual([id, []]);
      expect(text).toContain(path);
      for (const { status } of responses) expect(text).toContain(status);
    }
  });
});

test('scripts/release/site.ts packs the same bytes twice, under one folder, owned by root', async () => {
  const folders = [freshFolder(), freshFolder()];
  const runs = [];
  for (const folder of folders)
    runs.push(await runCommand([process.execPath, join(ROOT, 'scripts/release/site.ts'), folder]));
  const name = `authrealm-${manifest.version}-docs`;
  expect(runs.map(({ code, stdout, stderr }) => [code, stdout, stderr])).toEqual(
    folders.map((folder) => [0, `${folder}/${name}.tar.gz\n`, '']),
  );
  const digests = folders.map((folder) => Bun.hash(readFileSync(join(folder, `${name}.tar.gz`))));
  expect(digests[0]).toBe(digests[1]);
  const { stdout } = await runCommand(['tar', '-tzvf', join(folders[0] ?? '', `${name}.tar.gz`)]);
  const lines = stdout.trim().split('\n');
  expect(lines.filter((line) => !line.includes(' 0/0 ') || !line.includes(` ${name}/`))).toEqual([]);
}, 300_000);
