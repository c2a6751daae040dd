import type { JsonObject } from '../domain/json_object.ts';
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
 * `unreachable` is everything that goes wrong before a 200 has come whole, and never says what: a refused address and a
 * silent host must look alike. `not_json`: a 200 came whole, and is no JSON object.
 */
export type FetchResult =
  | { readonly kind: 'document'; readonly document: JsonObject }
  | { readonly kind: 'unreachable' | 'not_json' };

/**
 * Fetches the JSON object at a URL that a stranger named. Answers within `outboundMsMax`, and never rejects. The
 * resolver alone may go on after that: `hear` is handed what settles when it has. `headers`: sent beside our own.
 */
export type GuardedFetch = (
  url: string,
  hear?: (resolving: Promise<unknown>) => void,
  headers?: Readonly<Record<string, string>>,
) => Promise<FetchResult>;

export interface GuardedFetchOptions extends TargetRules, ExchangeOptions {
  /** Asked once a fetch; the system unless told otherwise. */
  readonly resolve?: Resolve;
  /** What dials the addresses that were checked. A test leads public ones to its own servers here. */
  readonly exchange?: Exchange;
}

/** JSON by its own name or by suffix (RFC 6839, 3.1). */
const JSON_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json[\t ]*(?:;|$)/i;

const UNREACHABLE = { kind: 'unreachable' } as const;
const NOT_JSON = { kind: 'not_json' } as const;

export function openGuardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  const exchange = openGuardedExchange(options);
  return async (url, hear, headers = {}) => {
    const exchanged = await exchange(url, {
      msMax: LIMITS.outboundMsMax,
      headers,
      ...(hear && { onResolve: hear }),
    });
    return exchanged ? read(exchanged) : UNREACHABLE;
  };
}

interface ExchangeTerms {
  readonly msMax: number;
  /** Ends it earlier. */
  readonly signal?: AbortSignal;
  readonly onResolve?: (resolving: Promise<unknown>) => void;
  readonly request?: OutboundRequest;
  /** More of what is sent along. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * One request to a URL that a stranger named: its name is resolved once, every address of it is judged, and what was judged
 * is dialled. Undefined where the rules let nobody go.
 */
export function openGuardedExchange(options: GuardedFetchOptions) {
  const { resolve = resolveBySystem, exchange = lazyExchange(options) } = options;
  return async (
    url: string,
    { msMax, signal, onResolve, request, headers = {} }: ExchangeTerms,
  ): Promise<ExchangeResult | undefined> => {
    const target = readTarget(url, options);
    if (target === undefined) return undefined;
    const deadline = openDeadline(msMax, signal);
    try {
      const resolving = addressesOf(target, resolve);
      onResolve?.(resolving);
      // A resolver cannot be told to stop; it is no longer waited for.
      const addresses = await Promise.race([resolving, nothingAfter(deadline.signal)]);
      return await dial({ exchange, target: { ...target, headers }, request }, addresses, deadline);
    } finally {
      deadline.clear();
    }
  };
}

/** A service that asks nobody does not load what asks, at its start. */
function lazyExchange(options: ExchangeOptions): Exchange {
  let opened: Promise<Exchange> | undefined;
  return async (...asked) => {
    opened ??= import('./exchange.ts').then(({ openExchange }) => openExchange(options));
    return (await opened)(...asked);
  };
}

interface Deadline {
  /** Aborted when it has come. */
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
 * Tries the addresses in turn until one takes the call. One that is silent has half of what is left to take it where
 * another follows: a host may be reachable by one family alone (RFC 8305, 1).
 */
async function dial(
  { exchange, target, request }: DialOptions,
  addresses: readonly CheckedAddress[],
  { signal, leftMs }: Deadline,
): Promise<ExchangeResult> {
  for (const [place, address] of addresses.entries()) {
    const isLast = place === addresses.length - 1;
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

/** The JSON object in an answer, if it is called one and is one. */
export function jsonIn({ type, body }: Pick<OutboundResponse, 'type' | 'body'>): JsonObject | undefined {
  return JSON_TYPE.test(type) ? parseObject(body) : undefined;
}

function parseObject(body: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}
