import type { Call, CallHandler } from '../pipeline/call.ts';
import { asksFor, negotiate, type Representations, representationsOf } from '../pipeline/negotiation.ts';
import { faultReply, type Reply } from '../server/reply.ts';
import { normalise, pathOf, type Route } from '../server/router.ts';
import { prefixOf } from '../server/url.ts';

/** The security headers of every page: only resources of this service may load. */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Opener-Policy': 'same-origin',
} as const;

/** Pages are revalidated at each request; an asset never changes, because its name contains its hash. */
const REVALIDATED = 'no-cache';
const FOREVER = 'public, max-age=31536000, immutable';

/** The pages, by their paths; all other files that were built are assets. */
const PAGES: Readonly<Record<string, string>> = { '/console': 'index.html', '/docs': 'docs.html' };

type Assets = ReadonlyMap<string, Representations>;

/**
 * Serves the built console and the rendered OpenAPI document from a folder. Its names are read now, its files at the first
 * request. Other origins cannot read them.
 */
export function consoleRoutes(folder: string, baseUrl: string): readonly Route[] {
  const names = namesIn(folder);
  const replies = lazyAssets(folder, names);
  const isPage = new Set(Object.values(PAGES));
  const assets = names.filter((name) => !name.endsWith('.gz') && !isPage.has(name));
  const routes: Route[] = [
    { pattern: '/', answers: { GET: home(baseUrl) } },
    ...Object.entries(PAGES).map(([pattern, name]) => ({
      pattern,
      answers: { GET: page(name, baseUrl + pattern, replies) },
    })),
    ...assets.map((name) => ({
      pattern: `/console/${name}`,
      label: '/console/:name',
      answers: { GET: async (call: Call) => negotiate(call, (await replies()).get(name) as Representations) },
    })),
  ];
  const prefix = prefixOf(baseUrl);
  return [...new Set(['', prefix])].flatMap((before) =>
    routes.map((route) => ({ ...route, pattern: normalise(before + route.pattern), isOwn: true as const })),
  );
}

/** A browser that opens the base URL gets the console; for other clients there is no such path. */
function home(baseUrl: string): CallHandler {
  const headers = { Location: `${baseUrl}/console`, Vary: 'Accept', 'Cache-Control': REVALIDATED };
  const toConsole: Reply = Object.freeze({ status: 303, headers: Object.freeze(headers), body: null });
  return ({ request }) => (asksFor('text/html', request) ? toConsole : faultReply('unknown_route'));
}

function lazyAssets(folder: string, names: readonly string[]): () => Promise<Assets> {
  let reading: Promise<Assets> | undefined;
  return () => {
    // A failed read is retried at the next request.
    reading ??= readAssets(folder, names).catch((error) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}

function page(name: string, url: string, assets: () => Promise<Assets>): CallHandler {
  const toPage: Reply = { status: 308, headers: { Location: url, 'Cache-Control': REVALIDATED }, body: null };
  return async (call) => {
    // Asset links are relative to the page, so a trailing slash would break them.
    if (pathOf(call.request.url).endsWith('/')) return toPage;
    const found = (await assets()).get(name);
    return found ? negotiate(call, found) : faultReply('console_not_built');
  };
}

async function readAssets(folder: string, names: readonly string[]): Promise<Assets> {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const name of names) files.set(name, await Bun.file(`${folder}/${name}`).bytes());
  const plain = [...files].filter(([name]) => !name.endsWith('.gz'));
  return new Map(
    plain.map(([name, bytes]) => [name, representationsOf(headersOf(name), bytes, files.get(`${name}.gz`))]),
  );
}

/** File names that need no encoding in a path. */
const NAME = /^\w[\w.-]*$/;

/** The files of a folder; none if it does not exist. */
function namesIn(folder: string): readonly string[] {
  try {
    return [...new Bun.Glob('*').scanSync({ cwd: folder, onlyFiles: true })].filter((name) =>
      NAME.test(name),
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function headersOf(name: string): Readonly<Record<string, string>> {
  const isPage = Object.values(PAGES).includes(name);
  return {
    'Content-Type': Bun.file(name).type,
    ...PAGE_HEADERS,
    'Cache-Control': isPage ? REVALIDATED : FOREVER,
  };
}
