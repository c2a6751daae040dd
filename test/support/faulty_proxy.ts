import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What becomes of one request instead of being passed on and answered. */
export type ProxyFault =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** The connection ends without an answer: `before` the service saw the request, or `after` it answered. */
  | { readonly cut: 'before' | 'after' | 'inside' }
  /** Nothing ever comes. */
  | 'hang';

export interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly at: number;
}

/** A real server in front of the real service, which does to the next requests what it was told. */
export interface FaultyProxy {
  readonly url: string;
  /** Everything that came, in order. */
  readonly requests: readonly ProxiedRequest[];
  /** The next requests whose `METHOD path` matches fall into these troubles, one each. */
  injectFaults(pattern: RegExp, ...troubles: readonly ProxyFault[]): void;
  stop(): Promise<void>;
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const seen: ProxiedRequest[] = [];
  let planned: { readonly pattern: RegExp; readonly trouble: ProxyFault }[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const { method = '', url = '', headers } = request;
    seen.push({ method, path: url, headers, body, at: performance.now() });
    const next = planned.find(({ pattern }) => pattern.test(`${method} ${url}`));
    planned = planned.filter((each) => each !== next);
    await answer(next?.trouble, response, () => passOn(target, request, body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: seen,
    injectFaults: (pattern, ...troubles) => {
      planned.push(...troubles.map((trouble) => ({ pattern, trouble })));
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** What an answer says of its way here, where it was unpacked. */
const OF_THE_WAY = new Set(['content-length', 'content-encoding', 'transfer-encoding']);

async function answer(
  trouble: ProxyFault | undefined,
  response: ServerResponse,
  passOn: () => Promise<Response>,
): Promise<void> {
  if (trouble === 'hang') return;
  if (trouble !== undefined && 'status' in trouble) {
    response.writeHead(trouble.status, trouble.headers).end(trouble.body ?? '');
    return;
  }
  if (trouble?.cut === 'before') {
    response.socket?.destroy();
    return;
  }
  const passed = await passOn();
  const text = await passed.text();
  const headers = Object.fromEntries([...passed.headers].filter(([name]) => !OF_THE_WAY.has(name)));
  if (trouble?.cut === 'after') {
    response.socket?.destroy();
    return;
  }
  if (trouble?.cut === 'inside') {
    response.writeHead(passed.status, { ...headers, 'content-length': String(text.length + 10) });
    response.write(text.slice(0, 5), () => response.socket?.destroy());
    return;
  }
  response.writeHead(passed.status, headers).end(text);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}

function passOn(
  target: string,
  { method = '', url = '', headers }: IncomingMessage,
  body: string,
): Promise<Response> {
  const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...rest } = headers;
  const init = { method, headers: rest as Record<string, string>, redirect: 'manual' } as const;
  return fetch(target + url, body === '' ? init : { ...init, body });
}
