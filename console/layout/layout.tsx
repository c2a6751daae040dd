import { DESCRIBED } from 'authrealm:described';
import { useMemo } from 'preact/hooks';
import { useObserved } from '../observable.ts';
import { Icon } from '../parts/icon.tsx';
import { Empty } from '../parts/notices.tsx';
import { type SessionState, session } from '../session/session.ts';
import { PageHead } from './head.tsx';
import type { Shortcut } from './keys.tsx';
import type { Page } from './page.ts';
import { go, href, matched, type Place, place } from './router.ts';
import { SessionBox } from './session_box.tsx';
import { Shell } from './shell.tsx';

interface Pages {
  readonly pages: readonly Page[];
}

/** What stands around every page of an open session. */
export function Layout({ pages }: Pages) {
  const here = useObserved(place);
  const state = useObserved(session);
  const offered = useMemo(() => pages.filter((page) => isOffered(page, state)), [pages, state]);
  const shortcuts = useMemo(() => shortcutsOf(offered), [offered]);
  return (
    <Shell
      name="authrealm"
      shortcuts={shortcuts}
      navigation={<Navigation pages={offered} here={here} />}
      foot={<SessionBox />}
      lastTool={<span class="faint small">{DESCRIBED.version}</span>}
    >
      <CurrentPage pages={pages} here={here} />
    </Shell>
  );
}

function Navigation({ pages, here }: Pages & { readonly here: Place }) {
  return (
    <nav aria-label="Pages">
      <ul class="nav">
        {pages.map(({ pattern, nav }) => (
          <li key={pattern}>
            <a href={href(...pattern.split('/').filter(Boolean))} aria-current={currentOf(pattern, here)}>
              {nav && <Icon name={nav.icon} />}
              {nav?.label}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function isOffered({ nav }: Page, { open }: SessionState): boolean {
  return nav?.scopes.some((scope) => open?.scopes.has(scope)) ?? false;
}

function currentOf(pattern: string, { steps }: Place): 'page' | 'true' | undefined {
  if (pattern === steps.join('/')) return 'page';
  return pattern !== '' && pattern === steps[0] ? 'true' : undefined;
}

function CurrentPage({ pages, here }: Pages & { readonly here: Place }) {
  for (const { pattern, Page } of pages) {
    const parameters = matched(pattern, here.steps);
    // Another record is another page: nothing of the one before stays.
    if (parameters) return <Page key={here.steps.join('/')} parameters={parameters} />;
  }
  return (
    <>
      <PageHead title="No such page" />
      <Empty icon="find" title="Nothing has this address">
        <p>
          The link may be of another release, or not whole. <a href="#/">Find a user</a> instead.
        </p>
      </Empty>
    </>
  );
}

function shortcutsOf(pages: readonly Page[]): readonly Shortcut[] {
  return pages.flatMap(({ pattern, nav }) =>
    nav ? [{ keys: `g ${nav.key}`, words: `Go to ${nav.label}`, act: () => go(href(pattern)) }] : [],
  );
}
