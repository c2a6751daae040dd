import { DESCRIBED } from 'authrealm:described';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useObserved } from '../observable.ts';
import { Announcer } from '../parts/announcer.tsx';
import { Icon } from '../parts/icon.tsx';
import { Empty } from '../parts/notices.tsx';
import { type SessionState, session } from '../session/session.ts';
import { Brand } from './brand.tsx';
import { PageHead } from './head.tsx';
import { KeysDialog, useKeys, useShortcuts } from './keys.tsx';
import type { Page } from './page.ts';
import { go, href, matched, type Place, place } from './router.ts';
import { SessionBox } from './session_box.tsx';
import { ThemeSwitch } from './theme_switch.tsx';

interface Pages {
  readonly pages: readonly Page[];
}

/** What stands around every page of an open session. */
export function Layout({ pages }: Pages) {
  const here = useObserved(place);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [areKeysShown, setKeysShown] = useState(false);
  useKeys();
  const state = useObserved(session);
  const offered = useMemo(() => pages.filter((page) => isOffered(page, state)), [pages, state]);
  useShortcuts(useMemo(() => shortcutsOf(offered, () => setKeysShown(true)), [offered]));
  useEffect(() => setMenuOpen(false), [here]);
  return (
    <div class={isMenuOpen ? 'layout menu-open' : 'layout'}>
      <button type="button" class="skip" onClick={skip}>
        Skip to the page
      </button>
      <header class="bar">
        <a class="brand" href="#/">
          <Brand /> authrealm
        </a>
        <button
          type="button"
          class="icon-button menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="menu"
          aria-label="Menu"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name={isMenuOpen ? 'close' : 'menu'} />
        </button>
        <div id="menu" class="menu">
          <Navigation pages={offered} here={here} />
          <div class="menu-foot">
            <SessionBox />
            <div class="menu-tools">
              <ThemeSwitch />
              <button type="button" class="text-button" onClick={() => setKeysShown(true)}>
                <Icon name="keys" /> Keys
              </button>
              <span class="faint small">{DESCRIBED.version}</span>
            </div>
          </div>
        </div>
      </header>
      <main id="main" class="main" tabIndex={-1}>
        <CurrentPage pages={pages} here={here} />
      </main>
      <Announcer />
      {areKeysShown && <KeysDialog onClose={() => setKeysShown(false)} />}
    </div>
  );
}

function skip(): void {
  document.getElementById('main')?.focus();
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

function shortcutsOf(pages: readonly Page[], showKeys: () => void) {
  const steps = pages.flatMap(({ pattern, nav }) =>
    nav ? [{ keys: `g ${nav.key}`, words: `Go to ${nav.label}`, act: () => go(href(pattern)) }] : [],
  );
  return [{ keys: '?', words: 'Show this list', act: showKeys }, ...steps];
}
