import { SCHEMA } from 'authrealm:schema';
import { useEffect, useMemo } from 'preact/hooks';
import { signOut } from '../api/sign_out.ts';
import { useObservable } from '../observable.ts';
import { announce } from '../parts/announcer.tsx';
import { Icon } from '../parts/icon.tsx';
import { EmptyState } from '../parts/notices.tsx';
import { useSecondsUntil } from '../parts/seconds_until.ts';
import { UntrustedText } from '../parts/untrusted_text.tsx';
import { hasScope, type SessionState, session, setSignInError } from '../session/session.ts';
import type { Shortcut } from './keys.tsx';
import { type Page, PageHead } from './page.tsx';
import { currentRoute, href, matchPattern, navigate, type Route } from './router.ts';
import { Shell } from './shell.tsx';

interface Pages {
  readonly pages: readonly Page[];
}

interface SignInProgress {
  /** Whether a sign-in is in progress. */
  readonly isSigningIn: boolean;
}

/** The frame around every page of a session. */
export function Layout({ pages, isSigningIn }: Pages & SignInProgress) {
  const route = useObservable(currentRoute);
  const state = useObservable(session);
  const visible = useMemo(() => pages.filter((page) => isVisible(page, state)), [pages, state]);
  const shortcuts = useMemo(() => shortcutsOf(visible), [visible]);
  return (
    <Shell
      name="authrealm"
      shortcuts={shortcuts}
      navigation={<Navigation pages={visible} route={route} />}
      foot={state.open && <SessionBox open={state.open} />}
      lastTool={<span class="faint small">{SCHEMA.version}</span>}
    >
      <PendingSignInNote isSigningIn={isSigningIn} />
      <CurrentPage pages={pages} route={route} />
    </Shell>
  );
}

/** A sign-in that failed while another session is open, and can be retried. */
function PendingSignInNote({ isSigningIn }: SignInProgress) {
  const { open, message, retry } = useObservable(session);
  if (!open || !retry) return null;
  return (
    <div class="note note-warn">
      <Icon name="warning" />
      <div>
        <p role="status">{message}</p>
        <div class="actions">
          <button type="button" class="button" disabled={isSigningIn} onClick={retry}>
            Retry sign-in
          </button>
          <button type="button" class="button" onClick={() => setSignInError()}>
            Dismiss
          </button>
        </div>
      </div>
    </div>
  );
}

function Navigation({ pages, route }: Pages & { readonly route: Route }) {
  return (
    <nav aria-label="Pages">
      <ul class="nav">
        {pages.map(({ pattern, nav }) => (
          <li key={pattern}>
            <a href={href(...pattern.split('/').filter(Boolean))} aria-current={currentOf(pattern, route)}>
              {nav && <Icon name={nav.icon} />}
              {nav?.label}
            </a>
          </li>
        ))}
        <li>
          <a href="docs">
            <Icon name="try" />
            Try it
          </a>
        </li>
      </ul>
    </nav>
  );
}

function isVisible({ nav }: Page, state: SessionState): boolean {
  return nav?.scopes.some((scope) => hasScope(state, scope)) ?? false;
}

function currentOf(pattern: string, { segments }: Route): 'page' | 'true' | undefined {
  if (pattern === segments.join('/')) return 'page';
  return pattern !== '' && pattern === segments[0] ? 'true' : undefined;
}

function CurrentPage({ pages, route }: Pages & { readonly route: Route }) {
  for (const { pattern, Page, followsQuery } of pages) {
    const parameters = matchPattern(pattern, route.segments);
    // The key remounts the page for another record or query.
    const key = followsQuery ? route.segments.join('/') : route.visit;
    if (parameters) return <Page key={key} parameters={parameters} />;
  }
  return (
    <>
      <PageHead title="Page not found" />
      <EmptyState icon="find" title="Nothing at this address">
        <p>
          The link may belong to another release or be incomplete. <a href="#/">Find a user</a> instead.
        </p>
      </EmptyState>
    </>
  );
}

function shortcutsOf(pages: readonly Page[]): readonly Shortcut[] {
  const search = { keys: '/', label: 'Find a user', run: focusSearch };
  const visits = pages.flatMap(({ pattern, nav }) =>
    nav ? [{ keys: `g ${nav.key}`, label: `Go to ${nav.label}`, run: () => navigate(href(pattern)) }] : [],
  );
  const tryIt = { keys: 'g t', label: 'Go to Try it', run: () => location.assign('docs') };
  return [...(pages.some(({ pattern }) => pattern === '') ? [search] : []), ...visits, tryIt];
}

/** The page Find focuses its box when it opens. */
function focusSearch(): void {
  const box = document.querySelector<HTMLInputElement>('.find input');
  if (!box) navigate(href());
  box?.focus();
  box?.select();
}

/** Seconds before the end at which a warning is announced. */
const WARNING_SECONDS = 120;

/** The user, the remaining time, and the button to sign out. */
function SessionBox({ open }: { readonly open: NonNullable<SessionState['open']> }) {
  const tokenSeconds = useSecondsUntil(open.expiresAt);
  const sessionSeconds = useSecondsUntil(open.endsAt);
  const isNearEnd = tokenSeconds <= WARNING_SECONDS;
  useEffect(() => {
    const advice = open.expiresAt >= open.endsAt ? 'Save your work.' : 'Use the page to stay.';
    if (isNearEnd) announce(`Your session ends in less than two minutes. ${advice}`);
  }, [isNearEnd, open.expiresAt]);
  // Near its end, the token of a page that is used is renewed.
  const secondsLeft = tokenSeconds < WARNING_SECONDS ? tokenSeconds : sessionSeconds;
  return (
    <section class="session" aria-label="Session">
      <div class="session-who">
        <Icon name="user" />
        <span>
          <UntrustedText text={open.label} />
        </span>
      </div>
      <p class={secondsLeft < WARNING_SECONDS ? 'session-left soon' : 'session-left'} data-left={secondsLeft}>
        Ends in {remainingText(secondsLeft)}
      </p>
      <a class="text-button" href={href('session')}>
        <Icon name="profile" /> Your session
      </a>
      <button type="button" class="text-button" onClick={signOut}>
        <Icon name="signOut" /> Sign out
      </button>
    </section>
  );
}

function remainingText(seconds: number): string {
  if (seconds >= 5_400) return `${Math.round(seconds / 3_600)} h`;
  if (seconds >= WARNING_SECONDS) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
