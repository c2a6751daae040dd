import type { CallHandler } from '../pipeline/call.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A path and what it answers. HEAD comes with GET. */
export interface Route {
  /** Static segments and `:name` ones, for example `/v2/authentication-realms/:id`. */
  readonly pattern: string;
  readonly answers: Readonly<Partial<Record<Method, CallHandler>>>;
  /** What it is counted and logged as, where that is not its pattern: paths that are of one kind, or new in each release. */
  readonly label?: string;
  /** Whoever watches over the service is not counted. */
  readonly isUncounted?: true;
  /** Pages of this service alone read it: whatever origins are listed for CORS. */
  readonly isOwn?: true;
}

/** What a route is counted and logged as. */
export function labelOf({ label, pattern }: Route): string {
  return label ?? pattern;
}

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** The methods of a route as its Allow header lists them. */
export function allowedMethods(route: Route): string {
  return Object.keys(route.answers)
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ');
}

/**
 * The methods that a path lacks and that another one would take as its own, because it has a name where this one is
 * spelled out: a runtime that chooses by method first would answer `GET …/search` as a record of that ID.
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

/** The path of a request target: absolute, or origin-form where an HTTP/1.0 request named no host. */
export function pathOf(url: string): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  if (start < 0) return '/';
  const end = url.slice(start).search(/[?#]/);
  return end < 0 ? url.slice(start) : url.slice(start, start + end);
}

/** One spelling for every path that means the same: no doubled slashes, none at the end (contract 7.5). */
export function normalise(path: string): string {
  const single = path.replace(/\/{2,}/g, '/');
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
}

/**
 * Finds the route of a path that the native routes left over. It decides exactly as they do; a segment that cannot be
 * decoded is handed on as it is, and is then no identifier.
 */
export function openRouter(routes: readonly Route[]): (path: string) => Match | undefined {
  const table = routes
    .map((route) => ({ route, segments: route.pattern.split('/') }))
    .sort((left, right) => compare(left.segments, right.segments));
  return (path) => {
    const segments = normalise(path).split('/');
    for (const { route, segments: pattern } of table) {
      if (pattern.length !== segments.length) continue;
      const params = paramsOf(pattern, segments);
      if (params) return { route, params };
    }
    return undefined;
  };
}

/** A spelled-out segment goes before a named one, the earliest difference deciding. */
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
    if (part.startsWith(':')) params[part.slice(1)] = decoded(segment);
    else if (part !== segment) return undefined;
  }
  return params;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
