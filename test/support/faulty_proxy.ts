import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from './ending.ts';

/** The injected fault of one request, in place of a forwarded response. */
export type ProxyFault =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** The connection ends: before the service gets the request, after it responds, or inside the response. */
  | { readonly cut: 'before' | 'after' | 'inside' }
  /** There is never a response. */
  | 'hang';

export interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly at: number;
}

/** A proxy in front of the service that injects faults into requests. */
export interface FaultyProxy {
  readonly url: string;
  /** Every received request, in order. */
  readonly requests: readonly ProxiedRequest[];
  /** Injects these faults into the next requests whose `METHOD path` matches, one each. */
  injectFaults(pattern: RegExp, ...faults: readonly ProxyFault[]): void;
  stop(): Promise<void>;
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const requests: ProxiedRequest[] = [];
  let pending: { readonly pattern: RegExp; readonly fault: ProxyFault }[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const { method = '', url = '', headers } = request;
    requests.push({ method, path: url, headers, body, at: performance.now() });
    const next = pending.find(({ pattern }) => pattern.test(`${method} ${url}`));
    pending = pending.filter((each) => each !== next);
    await answer(next?.fault, response, () => forward(target, request, body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  atEnd(stop);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    injectFaults: (pattern, ...faults) => {
      pending.push(...faults.map((fault) => ({ pattern, fault })));
    },
    stop,
  };
}

/** Headers of a response that forwarding changes. */
const HOP_HEADERS = new Set(['content-length', 'content-encoding', 'transfer-encoding']);

async function answer(
  fault: ProxyFault | undefined,
  response: ServerResponse,
  forward: () => Promise<Response>,
): Promise<void> {
  if (fault === 'hang') return;
  if (fault !== undefined && 'status' in fault) {
    response.writeHead(fault.status, fault.headers).end(fault.body ?? '');
    return;
  }
  if (fault?.cut === 'before') {
    response.socket?.destroy();
    return;
  }
  const forwarded = await forward();
  const text = await forwarded.text();
  const headers = Object.fromEntries([...forwarded.headers].filter(([name]) => !HOP_HEADERS.has(name)));
  if (fault?.cut === 'after') {
    response.socket?.destroy();
    return;
  }
  if (fault?.cut === 'inside') {
    response.writeHead(forwarded.status, { ...headers, 'content-length': String(text.length + 10) });
    response.write(text.slice(0, 5), () => response.socket?.destroy());
    return;
  }
  response.writeHead(forwarded.status, headers).end(text);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}

function forward(
  target: string,
  { method = '', url = '', headers }: IncomingMessage,
  body: string,
): Promise<Response> {
  const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...rest } = headers;
  const init = { method, headers: rest as Record<string, string>, redirect: 'manual' } as const;
  return fetch(target + url, body === '' ? init : { ...init, body });
}
