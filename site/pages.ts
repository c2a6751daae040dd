import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Owner } from '../scripts/release/owner.ts';
import { CHAPTERS } from './contents.ts';

/** The markdown pages of the site, and where a link to a file of the repository leads. */

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface Page {
  /** The path in the repository. */
  readonly source: string;
  /** The path in the site. */
  readonly path: string;
  readonly title: string;
}

export interface PageChapter {
  readonly title: string;
  readonly weight: number;
  readonly pages: readonly Page[];
}

/** Throws if a page of the contents is missing. A test finds pages of `docs/` that are not in the contents. */
export function readChapters(): readonly PageChapter[] {
  return CHAPTERS.map(({ title, weight, sources }) => ({
    ...{ title, weight },
    pages: sources.flatMap(filesOf).map(readPage),
  }));
}

function filesOf(pattern: string): readonly string[] {
  const files = [...new Bun.Glob(pattern).scanSync(ROOT)].sort();
  if (files.length === 0) throw new Error(`site/contents.ts names ${pattern}, which does not exist`);
  return files;
}

function readPage(source: string): Page {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(ROOT, source), 'utf8')) ?? [];
  if (title === undefined) throw new Error(`${source} has no title: start it with a line "# Title"`);
  return { source, path: pathOf(source), title: title.replaceAll('`', '') };
}

/** `docs/guides/keys.md` becomes `guides/keys.html`, a README the index of its folder. */
function pathOf(source: string): string {
  const path = source.replace(/^docs\//, '').replace(/\bREADME\.md$/, 'index.md');
  return (path.includes('/') ? path : path.toLowerCase()).replace(/\.md$/, '.html');
}

/** The front page. Once the owner has named the package, it has the npm commands that run it and install it as `authrealm`, and no clone. */
export function withInstallation(text: string, { registryName: name }: Pick<Owner, 'registryName'>): string {
  if (name === '') return text;
  const block = `\`\`\`sh\nnpx --yes -- ${name} demo\n\`\`\`\n\nFor programs: \`npm install authrealm@npm:${name}\`.`;
  return text.replaceAll(/<!-- (install|clone) -->.*?<!-- end -->/gs, (_, part) =>
    part === 'install' ? `With Node.js 20.11 or newer:\n\n${block}` : '',
  );
}

/** Files that the site contains as they are if a page links to them. */
const COPIED = /^(deploy\/.+|examples\/login_page\/.+|LICENSE|.+\.(png|svg))$/;

export interface Links {
  /** Where a link of a page leads, relative to it; undefined if the site has no such place. */
  resolve(page: Page, href: string): string | undefined;
  /** The files to copy, by their path in the site. */
  readonly copied: ReadonlyMap<string, string>;
}

/**
 * Links to other files of the repository, such as tests, lead to `repository`, the address of the released files. If it is
 * undefined, they have no target.
 */
export function openLinks(pages: readonly Page[], repository: string | undefined): Links {
  // README.md is the first page of the repository, docs/index.md that of the site.
  const known = new Map([
    ['README.md', 'index.html'],
    ...pages.map(({ source, path }) => [source, path] as const),
  ]);
  const copied = new Map<string, string>();
  const targetOf = (source: string): string | undefined => {
    const page = known.get(source);
    if (page !== undefined) return page;
    if (!existsSync(join(ROOT, source))) throw new Error(`${source} does not exist`);
    if (!COPIED.test(source)) return undefined;
    const path = source.replace(/^docs\//, '').replace(/^LICENSE$/, 'license.txt');
    copied.set(path, join(ROOT, source));
    return path;
  };
  return {
    copied,
    resolve(page, href) {
      if (/^[a-z]+:|^#/.test(href)) return href;
      const [path = '', anchor] = href.split('#');
      const source = posix.join(posix.dirname(page.source), path);
      const target = targetOf(source);
      if (target === undefined) return repository === undefined ? undefined : `${repository}/${source}`;
      return `${relativePath(page.path, target)}${anchor === undefined ? '' : `#${anchor}`}`;
    },
  };
}

/** Links are relative, so that the site works under any address and from a folder. */
export function relativePath(from: string, to: string): string {
  return posix.relative(posix.dirname(from), to);
}
