import { observable } from '../observable.ts';

/** The current page. It is in the fragment, which browsers never send. */
export interface Route {
  /** Path segments, decoded. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  /** Differs after each navigation, also to the same page. */
  readonly visit: number;
}

let visits = 0;

export const currentRoute = observable<Route>(readRoute());

/** The last fragment that the page has set or read. */
let lastFragment = isRoute() ? location.hash : '';

addEventListener('hashchange', () => {
  if (isRoute()) update();
});

/** Does nothing when a sign-in code has left the address. */
function update(): void {
  if (location.hash === lastFragment) return;
  lastFragment = location.hash;
  currentRoute.set(readRoute());
}

/** Other fragments, such as a sign-in code, are no routes. */
function isRoute(): boolean {
  return /^(#\/.*)?$/s.test(location.hash);
}

function readRoute(): Route {
  visits += 1;
  const fragment = isRoute() ? location.hash.replace(/^#\/?/, '') : '';
  const [path = '', query = ''] = fragment.split('?', 2);
  return {
    segments: path.split('/').filter(Boolean).map(decode),
    query: new URLSearchParams(query),
    visit: visits,
  };
}

/** Fragments are untrusted: invalid encoding stays unchanged. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The fragment of the current route, with its query. */
export function currentFragment(): string {
  return lastFragment || href();
}

/** `href('realms', id)` is `#/realms/…`. */
export function href(...segments: readonly string[]): string {
  return `#/${segments.map(encodeURIComponent).join('/')}`;
}

/** Replaces the address, so that a one-time code does not stay in the history. */
export function replaceLocation(fragment: string): void {
  history.replaceState(null, '', location.pathname + fragment);
  update();
}

export function navigate(fragment: string): void {
  location.hash = fragment;
}

/**
 * Replaces the query of the address, whose entry of the history then holds no place in a list. Does nothing if the address
 * already belongs to the next page, before its hashchange event.
 */
export function replaceQuery(values: Readonly<Record<string, string>>): void {
  if (location.hash !== lastFragment) return;
  const { segments } = currentRoute.get();
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== '')).toString();
  const fragment = href(...segments) + (query === '' ? '' : `?${query}`);
  if (fragment === lastFragment) return;
  history.replaceState(null, '', fragment);
  lastFragment = location.hash;
}

export type Parameters = Readonly<Record<string, string>>;

/** The parameters of a path such as `realms/:realm`; undefined if it does not match. */
export function matchPattern(pattern: string, segments: readonly string[]): Parameters | undefined {
  const expected = pattern.split('/').filter(Boolean);
  if (expected.length !== segments.length) return undefined;
  const pairs = expected.map((segment, index) => [segment, segments[index] ?? ''] as const);
  if (pairs.some(([segment, actual]) => !segment.startsWith(':') && segment !== actual)) return undefined;
  return Object.fromEntries(
    pairs
      .filter(([segment]) => segment.startsWith(':'))
      .map(([segment, actual]) => [segment.slice(1), actual]),
  );
}
