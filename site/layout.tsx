import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import type { Section } from './markdown.tsx';
import { relativePath } from './pages.ts';

/** The frame of every page. It works without a script: only the search and the copy buttons need one. */

export interface SitePage {
  /** The path in the site. */
  readonly path: string;
  readonly title: string;
}

export interface SiteChapter {
  readonly title: string;
  readonly pages: readonly SitePage[];
  /** Shown below the pages, with the chapter open. */
  readonly more?: ComponentChildren;
}

export interface Frame {
  readonly page: SitePage;
  readonly chapters: readonly SiteChapter[];
  readonly sections: readonly Section[];
  readonly version: string;
  readonly html: string;
}

export function renderPage(frame: Frame): string {
  return `<!doctype html>\n${render(<PageFrame {...frame} />)}\n`;
}

const ICON = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#2557c7"/><g \
fill="none" stroke="white" stroke-width="2"><circle cx="7" cy="12" r="2.5"/><circle cx="17" cy="7" r="2.5"/><circle \
cx="17" cy="17" r="2.5"/><path d="m9.3 10.9 5.4-2.8M9.3 13.1l5.4 2.8"/></g></svg>`,
)}`;

function PageFrame({ page, chapters, sections, version, html }: Frame) {
  const href = (path: string) => relativePath(page.path, path);
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{page.title === 'authrealm' ? 'authrealm' : `${page.title} · authrealm`}</title>
        <link rel="icon" href={ICON} />
        <link rel="stylesheet" href={href('site.css')} />
        <script defer src={href('site.js')} />
      </head>
      <body>
        <a class="skip" href="#content">
          Skip to the content
        </a>
        <header class="top">
          <a class="brand" href={href('index.html')}>
            authrealm <span class="faint small">{version}</span>
          </a>
          <search class="search">
            <label for="search" class="unseen">
              Search the documentation
            </label>
            <input id="search" type="search" placeholder="Search" autocomplete="off" spellcheck={false} />
            <div id="results" role="status" />
          </search>
          <button type="button" class="menu-button" popovertarget="menu">
            Menu
          </button>
        </header>
        <div class="columns">
          <nav id="menu" class="menu" aria-label="Pages" popover="auto">
            {chapters.map((chapter) => (
              <Chapter key={chapter.title} chapter={chapter} page={page} />
            ))}
          </nav>
          <main id="content" class={page.path.startsWith('tasks/') ? 'side-by-side' : undefined}>
            <article dangerouslySetInnerHTML={{ __html: html }} />
            <Neighbours page={page} pages={chapters.flatMap(({ pages }) => pages)} />
          </main>
          <Outline sections={sections} />
        </div>
        <footer class="faint small">
          authrealm {version}, <a href={href('license.txt')}>Apache-2.0</a>. Not affiliated with Elastic Path,
          whose names only say what the service is compatible with.
        </footer>
      </body>
    </html>
  );
}

function Chapter({
  chapter: { title, pages, more },
  page,
}: {
  readonly chapter: SiteChapter;
  readonly page: SitePage;
}) {
  const isCurrent = more !== undefined || pages.some(({ path }) => path === page.path);
  return (
    <details open={isCurrent || title === 'Start'}>
      <summary>{title}</summary>
      <ul>
        {pages.map(({ path, title: name }) => (
          <li key={path}>
            <a href={relativePath(page.path, path)} aria-current={path === page.path ? 'page' : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
      {more}
    </details>
  );
}

/** The previous and the next page in reading order. */
function Neighbours({ page, pages }: { readonly page: SitePage; readonly pages: readonly SitePage[] }) {
  const index = pages.findIndex(({ path }) => path === page.path);
  if (index < 0) return null;
  const links = [
    ['Previous', pages[index - 1]],
    ['Next', pages[index + 1]],
  ] as const;
  return (
    <nav class="neighbours" aria-label="Neighbouring pages">
      {links.map(([label, neighbour]) =>
        neighbour === undefined ? (
          <span key={label} />
        ) : (
          <a key={label} href={relativePath(page.path, neighbour.path)}>
            <span class="faint small">{label}</span> {neighbour.title}
          </a>
        ),
      )}
    </nav>
  );
}

function Outline({ sections }: Pick<Frame, 'sections'>) {
  const headings = sections.filter(({ level }) => level === 2 || level === 3);
  if (headings.length < 2) return null;
  return (
    <nav class="outline" aria-label="On this page">
      <p class="faint small">On this page</p>
      <ul>
        {headings.map(({ anchor, heading, level }) => (
          <li key={anchor} class={`outline-${level}`}>
            <a href={`#${anchor}`}>{heading}</a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
