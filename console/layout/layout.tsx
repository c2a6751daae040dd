import { DESCRIBED } from 'authrealm:described';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { signOut } from '../api/sign_out.ts';
import { useObserved } from '../observable.ts';
import { announce } from '../parts/announcer.tsx';
import { Icon } from '../parts/icon.tsx';
import { Empty } from '../parts/notices.tsx';
import { Said } from '../parts/untrusted_text.tsx';
import { type SessionState, session, tellHindrance } from '../session/session.ts';
import type { Shortcut } from './keys.tsx';
import { type Page, PageHead } from './page.tsx';
import { go, href, matched, type Place, place } from './router.ts';
import { Shell } from './shell.tsx';

interface Pages {
  readonly pages: readonly Page[];
}

interface Entering {
  /** Whether another session is asked for. */
  readonly isEntering: boolean;
}

/** What stands around every page of an open session. */
export function Layout({ pages, isEntering }: Pages & Entering) {
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
      <Hindrance isEntering={isEntering} />
      <CurrentPage pages={pages} here={here} />
    </Shell>
  );
}

/** What was brought here and could not be asked for, while another session was open. */
function Hindrance({ isEntering }: Entering) {
  const { why, again } = useObserved(session);
  if (!again) return null;
  return (
    <div class="note note-warn">
      <Icon name="warning" />
      <div>
        <p role="status">{why}</p>
        <div class="actions">
          <button type="button" class="button" disabled={isEntering} onClick={again}>
            Retry sign-in
          </button>
          <button type="button" class="button" onClick={() => tellHindrance()}>
            Dismiss
          </button>
        </div>
      </div>
    </div>
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
      <PageHead title="Page not found" />
      <Empty icon="find" title="Nothing at this address">
        <p>
          The link may belong to another release or be incomplete. <a href="#/">Find a user</a> instead.
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

const TICK_MS = 1_000;
/** When the end is told, in seconds before it. */
const WARNING_SECONDS = 120;

/** Who is signed in, how long still, and the way out. */
function SessionBox() {
  const { open } = useObserved(session);
  const left = useLeft(open?.endsAt);
  if (!open) return null;
  return (
    <section class="session" aria-label="Session">
      <div class="session-who">
        <Icon name="user" />
        <span>
          <Said text={open.label} />
        </span>
      </div>
      <p class={left < WARNING_SECONDS ? 'session-left soon' : 'session-left'} data-left={left}>
        Ends in {remainingText(left)}
      </p>
      <button type="button" class="text-button" onClick={signOut}>
        <Icon name="signOut" /> Sign out
      </button>
    </section>
  );
}

/** Seconds until the end, by the clock that begins with the page. */
function useLeft(endsAt: number | undefined): number {
  const leftNow = () => Math.max(Math.ceil(((endsAt ?? 0) - performance.now()) / 1_000), 0);
  const [left, setLeft] = useState(leftNow);
  useEffect(() => {
    let isTold = false;
    const tick = () => {
      const now = leftNow();
      // Where nobody looks, browsers let a minute pass between two ticks.
      if (now <= WARNING_SECONDS && !isTold) {
        isTold = true;
        announce('Your session ends in less than two minutes. Save your work.');
      }
      setLeft(now);
    };
    tick();
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, [endsAt]);
  return left;
}

function remainingText(seconds: number): string {
  if (seconds >= 5_400) return `${Math.round(seconds / 3_600)} h`;
  if (seconds >= WARNING_SECONDS) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
