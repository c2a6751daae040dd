import { observable } from '../observable.ts';

/** Where the page is: all of it stands in the fragment, which no server ever sees. */
export interface Place {
  /** Steps of the path, decoded. */
  readonly steps: readonly string[];
  readonly query: URLSearchParams;
}

export const place = observable<Place>(readPlace());

/** The fragment that the page has put into its address, or has taken note of there. */
let known = isPlace() ? location.hash : '';

addEventListener('hashchange', () => {
  if (isPlace()) enter();
});

function enter(): void {
  known = location.hash;
  place.set(readPlace());
}

/** Fragments that bring something else, such as a code, are no places. */
function isPlace(): boolean {
  return /^(#\/.*)?$/s.test(location.hash);
}

function readPlace(): Place {
  if (!isPlace()) return { steps: [], query: new URLSearchParams() };
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return { steps: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** A fragment may be written by anybody: what cannot be decoded stays as it is. */
function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/** The fragment of where the page is, or was before a fragment came that is no place; with what the page keeps in it. */
export function currentFragment(): string {
  return known || href();
}

/** The fragment of a place: `href('realms', id)` is `#/realms/…`. */
export function href(...steps: readonly string[]): string {
  return `#/${steps.map(encodeURIComponent).join('/')}`;
}

/** Puts a place into the address, instead of all that brought somebody here: no step of history leads back to that. */
export function arriveAt(fragment: string): void {
  history.replaceState(null, '', location.pathname + fragment);
  enter();
}

export function go(fragment: string): void {
  location.hash = fragment;
}

/**
 * Keeps what the page shows in its address, without a step of history. A page that somebody is leaving keeps nothing: the address is
 * already that of the next one, though the browser has yet to tell of it.
 */
export function keepQuery(values: Readonly<Record<string, string>>): void {
  if (location.hash !== known) return;
  const { steps } = place.get();
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== '')).toString();
  history.replaceState(history.state, '', href(...steps) + (query === '' ? '' : `?${query}`));
  known = location.hash;
}

export type Parameters = Readonly<Record<string, string>>;

/** The parameters of a path that matches `realms/:realm`; undefined for another one. */
export function matched(pattern: string, steps: readonly string[]): Parameters | undefined {
  const wanted = pattern.split('/').filter(Boolean);
  if (wanted.length !== steps.length) return undefined;
  const pairs = wanted.map((step, index) => [step, steps[index] ?? ''] as const);
  if (pairs.some(([step, said]) => !step.startsWith(':') && step !== said)) return undefined;
  return Object.fromEntries(
    pairs.filter(([step]) => step.startsWith(':')).map(([step, said]) => [step.slice(1), said]),
  );
}
