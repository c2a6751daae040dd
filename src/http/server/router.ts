import { attempt } from '../../model/attempt.ts';
import type { CallHandler } from '../pipeline/call.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A path and its handlers. HEAD uses the handler of GET. */
export interface Route {
  /** Static segments and `:name` ones, for example `/v2/authentication-realms/:id`. */
  readonly pattern: string;
  readonly answers: Readonly<Partial<Record<Method, CallHandler>>>;
  /**
   * Its name in metrics and logs, by default its pattern: for paths of one kind, or paths that change with
   * each release.
   */
  readonly label?: string;
  /** Health checks are not rate limited. */
  readonly isUncounted?: true | undefined;
  /** Only for pages of this service, never for origins that CORS lists. */
  readonly isOwn?: true | undefined;
  /** It reads files, so its answer and its connection have no time limit but those of reading. */
  readonly isLong?: boolean;
}

/** The name of a route in metrics and logs. */
export function labelOf({ label, pattern }: Route): string {
  return label ?? pattern;
}

/** The methods of a route as its Allow header lists them. */
export function allowedMethods(route: Route): string {
  return Object.keys(route.answers)
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ');
}

/**
 * The methods that a path lacks and that a path with parameters in its place has. The runtime chooses by method first, so
 * it would answer `GET …/search` as a record with the ID `search`.
 */
export function coveredMethods(route: Route, routes: readonly Route[]): readonly Method[] {
  const own = route.pattern.split('/');
  const covering = routes.filter(({ pattern }) => {
    const parts = pattern.split('/');
    return parts.length === own.length && parts.every((part, at) => part.startsWith(':') || part === own[at]);
  });
  const methods = covering.flatMap(({ answers }) => Object.keys(answers) as Method[]);
  return [...new Set(methods)].filter((method) => !(method in route.answers));
}

/** The path of a request target: absolute form, or origin form of an HTTP/1.0 request without a host. */
export function pathOf(url: string): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  if (start < 0) return '/';
  const end = url.slice(start).search(/[?#]/);
  return end < 0 ? url.slice(start) : url.slice(start, start + end);
}

/** Removes doubled and trailing slashes (docs/wire.md#paths). */
export function normalise(path: string): string {
  const single = path.replace(/\/{2,}/g, '/');
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
}

/**
 * Finds the route of a path that the native routes did not match. It decides exactly as they do. A segment that cannot be
 * decoded is passed on unchanged and is then no valid ID.
 */
export function openRouter<R extends Pick<Route, 'pattern'>>(routes: readonly R[]) {
  const table = routes
    .map((route) => ({ route, segments: route.pattern.split('/') }))
    .sort((left, right) => compare(left.segments, right.segments));
  return (path: string) => {
    const segments = normalise(path).split('/');
    for (const { route, segments: pattern } of table) {
      if (pattern.length !== segments.length) continue;
      const params = paramsOf(pattern, segments);
      if (params) return { route, params };
    }
    return undefined;
  };
}

/** Static segments precede parameters; the first difference decides. */
function compare(left: readonly string[], right: readonly string[]): number {
  const at = left.findIndex((part, index) => part.startsWith(':') !== right[index]?.startsWith(':'));
  return at < 0 ? 0 : Number(left[at]?.startsWith(':')) - Number(right[at]?.startsWith(':'));
}

function paramsOf(
  pattern: readonly string[],
  segments: readonly string[],
): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const segment = segments[index] ?? '';
    if (part.startsWith(':')) params[part.slice(1)] = attempt(() => decodeURIComponent(segment)) ?? segment;
    else if (part !== segment) return undefined;
  }
  return params;
}
