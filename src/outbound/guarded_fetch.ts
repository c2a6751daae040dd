import { isJsonObject, type JsonObject } from '../domain/json_object.ts';
import { LIMITS } from '../domain/limits.ts';
import type { CheckedAddress } from './addresses.ts';
import type {
  Exchange,
  ExchangeOptions,
  ExchangeResult,
  OutboundRequest,
  OutboundResponse,
} from './exchange.ts';
import { addressesOf, type Resolve, readTarget, resolveBySystem, type TargetRules } from './target.ts';

/**
 * `unreachable`: any failure before a complete 200; it never names the reason, so that callers cannot tell a forbidden
 * address from a silent host. `not_json`: a complete 200 that is no JSON object.
 */
export type FetchResult =
  | { readonly kind: 'document'; readonly document: JsonObject }
  | { readonly kind: 'unreachable' | 'not_json' };

/**
 * Fetches the JSON object at an untrusted URL. Resolves within `outboundMsMax`, and never rejects. Name resolution may take
 * longer: `onResolve` receives its promise. `headers`: additional headers.
 */
export type GuardedFetch = (
  url: string,
  onResolve?: (resolving: Promise<unknown>) => void,
  headers?: Readonly<Record<string, string>>,
) => Promise<FetchResult>;

export interface GuardedFetchOptions extends TargetRules, ExchangeOptions {
  /** Called once for each fetch; default: the system's resolver. */
  readonly resolve?: Resolve;
  /** Connects to the checked addresses. Tests redirect public addresses to their own servers here. */
  readonly exchange?: Exchange;
}

/** `application/json`, or a type with the suffix `+json` (RFC 6839, 3.1). */
const JSON_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json[\t ]*(?:;|$)/i;

const UNREACHABLE = { kind: 'unreachable' } as const;
const NOT_JSON = { kind: 'not_json' } as const;

export function openGuardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  const exchange = openGuardedExchange(options);
  return async (url, onResolve, headers = {}) => {
    const exchanged = await exchange(url, {
      msMax: LIMITS.outboundMsMax,
      headers,
      ...(onResolve && { onResolve }),
    });
    return exchanged ? read(exchanged) : UNREACHABLE;
  };
}

interface GuardedRequest {
  readonly msMax: number;
  /** Ends the request earlier. */
  readonly signal?: AbortSignal;
  readonly onResolve?: (resolving: Promise<unknown>) => void;
  readonly request?: OutboundRequest;
  /** Additional headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Sends one request to an untrusted URL, guarded against SSRF: resolves its name once, checks every address, and connects to
 * a checked address. Undefined if the rules forbid the URL.
 */
export function openGuardedExchange(options: GuardedFetchOptions) {
  const { resolve = resolveBySystem, exchange = lazyExchange(options) } = options;
  return async (
    url: string,
    { msMax, signal, onResolve, request, headers = {} }: GuardedRequest,
  ): Promise<ExchangeResult | undefined> => {
    const target = readTarget(url, options);
    if (target === undefined) return undefined;
    const deadline = openDeadline(msMax, signal);
    try {
      const resolving = addressesOf(target, resolve);
      onResolve?.(resolving);
      // Name resolution cannot be cancelled; after the deadline nothing waits for it.
      const addresses = await Promise.race([resolving, nothingAfter(deadline.signal)]);
      return await dial({ exchange, target: { ...target, headers }, request }, addresses, deadline);
    } finally {
      deadline.clear();
    }
  };
}

/** Loads the exchange at its first use: a service that sends no requests never needs it. */
function lazyExchange(options: ExchangeOptions): Exchange {
  let opened: Promise<Exchange> | undefined;
  return async (...parameters) => {
    opened ??= import('./exchange.ts').then(({ openExchange }) => openExchange(options));
    return (await opened)(...parameters);
  };
}

interface Deadline {
  /** Aborted at the deadline. */
  readonly signal: AbortSignal;
  leftMs(): number;
  clear(): void;
}

function openDeadline(ms: number, earlier?: AbortSignal): Deadline {
  const end = new AbortController();
  const endsAt = performance.now() + ms;
  const abort = (): void => end.abort();
  const timer = setTimeout(abort, ms);
  earlier?.addEventListener('abort', abort, { once: true });
  if (earlier?.aborted) abort();
  return {
    signal: end.signal,
    leftMs: () => endsAt - performance.now(),
    clear() {
      clearTimeout(timer);
      earlier?.removeEventListener('abort', abort);
    },
  };
}

function nothingAfter(signal: AbortSignal): Promise<readonly CheckedAddress[]> {
  if (signal.aborted) return Promise.resolve([]);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve([]), { once: true }));
}

interface DialOptions {
  readonly exchange: Exchange;
  readonly target: Parameters<Exchange>[0];
  readonly request: OutboundRequest | undefined;
}

/**
 * Tries the addresses in turn until a connection succeeds. Each but the last has half of the remaining time to connect: a
 * host may be reachable by one family alone (RFC 8305, 1).
 */
async function dial(
  { exchange, target, request }: DialOptions,
  addresses: readonly CheckedAddress[],
  { signal, leftMs }: Deadline,
): Promise<ExchangeResult> {
  for (const [index, address] of addresses.entries()) {
    const isLast = index === addresses.length - 1;
    const connectMs = isLast ? undefined : leftMs() / 2;
    const exchanged = await exchange(target, address, signal, { connectMs, request });
    if (exchanged.kind !== 'unconnected') return exchanged;
  }
  return { kind: 'unconnected' };
}

function read(exchanged: ExchangeResult): FetchResult {
  if (exchanged.kind !== 'answered' || exchanged.status !== 200) return UNREACHABLE;
  const document = jsonIn(exchanged);
  return document === undefined ? NOT_JSON : { kind: 'document', document };
}

/** The JSON object in a response with a JSON media type; undefined for any other body. */
export function jsonIn({ type, body }: Pick<OutboundResponse, 'type' | 'body'>): JsonObject | undefined {
  return JSON_TYPE.test(type) ? parseObject(body) : undefined;
}

function parseObject(body: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
