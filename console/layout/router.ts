import { observable } from '../observable.ts';

/** Where the page is: all of it stands in the fragment, which no server ever sees. */
export interface Route {
  /** Steps of the path, decoded. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

export const currentRoute = observable<Route>(readRoute());

/** The fragment that the page has put into its address, or has taken note of there. */
let lastFragment = isRoute() ? location.hash : '';

addEventListener('hashchange', () => {
  if (isRoute()) update();
});

function update(): void {
  lastFragment = location.hash;
  currentRoute.set(readRoute());
}

/** Fragments that bring something else, such as a code, are no places. */
function isRoute(): boolean {
  return /^(#\/.*)?$/s.test(location.hash);
}

function readRoute(): Route {
  if (!isRoute()) return { segments: [], query: new URLSearchParams() };
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return { segments: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** A fragment may be written by anybody: what cannot be decoded stays as it is. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The fragment of where the page is, or was before a fragment came that is no place; with what the page keeps in it. */
export function currentFragment(): string {
  return lastFragment || href();
}

/** The fragment of a place: `href('realms', id)` is `#/realms/…`. */
export function href(...segments: readonly string[]): string {
  return `#/${segments.map(encodeURIComponent).join('/')}`;
}

/** Puts a place into the address, instead of all that brought somebody here: no step of history leads back to that. */
export function replaceLocation(fragment: string): void {
  history.replaceState(null, '', location.pathname + fragment);
  update();
}

export function navigate(fragment: string): void {
  location.hash = fragment;
}

/**
 * Keeps what the page shows in its address, without a step of history. A page that somebody is leaving keeps nothing: the address is
 * already that of the next one, though the browser has yet to tell of it.
 */
export function replaceQuery(values: Readonly<Record<string, string>>): void {
  if (location.hash !== lastFragment) return;
  const { segments } = currentRoute.get();
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== '')).toString();
  history.replaceState(history.state, '', href(...segments) + (query === '' ? '' : `?${query}`));
  lastFragment = location.hash;
}

export type Parameters = Readonly<Record<string, string>>;

/** The parameters of a path that matches `realms/:realm`; undefined for another one. */
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
