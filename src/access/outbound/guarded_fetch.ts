import { attempt } from '../../model/attempt.ts';
import { LIMITS } from '../../model/limits.ts';
import { isJsonObject, type JsonObject } from '../../model/text/json_object.ts';
import type { CheckedAddress } from './addresses.ts';
import type { Exchange, ExchangeOptions, OutboundRequest, OutboundResponse } from './exchange.ts';
import { addressesOf, type Resolve, readTarget, resolveBySystem, type TargetRules } from './target.ts';

/**
 * A request without a response. `forbidden`: the rules forbid the URL as it is written. `unreachable`: any other
 * failure, so that callers cannot tell a forbidden address from a silent host. `refusedAddress`, which only
 * administrators may see, is an address of the name that the rules forbid.
 */
type Unanswered =
  | { readonly kind: 'forbidden' }
  | { readonly kind: 'unreachable'; readonly refusedAddress?: string };

/** `redirect`: a status 3xx; any other but 200 is `unreachable`. `not_json`: a 200 that is no JSON object. */
export type FetchResult =
  | { readonly kind: 'document'; readonly document: JsonObject }
  | { readonly kind: 'redirect' }
  | { readonly kind: 'not_json' }
  | Unanswered;

/** Fetches the JSON object at an untrusted URL. Resolves within `outboundMsMax`, and never rejects. */
export type GuardedFetch = (url: string, options?: FetchOptions) => Promise<FetchResult>;

export interface FetchOptions {
  /** Default: `outboundMsMax`. */
  readonly msMax?: number;
  /** The issuer whose discovery document contains the URL. */
  readonly namedBy?: string | undefined;
  /** Receives the promise of the name resolution, which may take longer. */
  readonly onResolve?: (resolving: Promise<unknown>) => void;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface GuardedFetchOptions extends TargetRules, ExchangeOptions {
  /** Called if a name resolves to an address that is not allowed. */
  readonly onRefusedAddress?: (host: string, address: string) => void;
  /** Called once for each fetch; default: the system's resolver. */
  readonly resolve?: Resolve;
  /** Connects to the checked addresses. Tests redirect public addresses to their own servers here. */
  readonly exchange?: Exchange;
}

/** `application/json`, or a type with the suffix `+json` (RFC 6839, 3.1). */
const JSON_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json[\t ]*(?:;|$)/i;

export function openGuardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  const exchange = openGuardedExchange(options);
  return async (url, request) => read(await exchange(url, { msMax: LIMITS.outboundMsMax, ...request }));
}

interface GuardedRequest extends FetchOptions {
  readonly msMax: number;
  /** Ends the request earlier. */
  readonly signal?: AbortSignal | undefined;
  readonly request?: OutboundRequest;
}

/**
 * Sends one request to an untrusted URL, guarded against SSRF: resolves its name once, checks every address, and
 * connects to a checked address.
 */
export function openGuardedExchange(options: GuardedFetchOptions) {
  const { resolve = resolveBySystem, exchange = lazyExchange(options), onRefusedAddress } = options;
  return async (
    url: string,
    { msMax, signal, onResolve, request, headers = {}, namedBy }: GuardedRequest,
  ): Promise<OutboundResponse | Unanswered> => {
    const target = readTarget(url, options, namedBy);
    if (target === undefined) return { kind: 'forbidden' };
    const endsAt = performance.now() + msMax;
    const timeout = AbortSignal.timeout(msMax);
    const end = signal ? AbortSignal.any([timeout, signal]) : timeout;
    const resolving = addressesOf(target, resolve);
    onResolve?.(resolving);
    // Name resolution cannot be cancelled; after the deadline nothing waits for it.
    const addresses = await Promise.race([resolving, nothingAfter(end)]);
    if (!('refused' in addresses))
      return await dial(addresses, endsAt, (address, connectMs) =>
        exchange({ ...target, headers }, address, end, { connectMs, request }),
      );
    onRefusedAddress?.(target.host, addresses.refused);
    return { kind: 'unreachable', refusedAddress: addresses.refused };
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

function nothingAfter(signal: AbortSignal): Promise<readonly CheckedAddress[]> {
  if (signal.aborted) return Promise.resolve([]);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve([]), { once: true }));
}

/**
 * Tries the addresses in turn until a connection succeeds. Each but the last has half of the remaining time to connect:
 * a host may be reachable by one family alone (RFC 8305, 1).
 */
async function dial(
  addresses: readonly CheckedAddress[],
  endsAt: number,
  send: (address: CheckedAddress, connectMs: number | undefined) => ReturnType<Exchange>,
): Promise<OutboundResponse | Unanswered> {
  for (const [index, address] of addresses.entries()) {
    const isLast = index === addresses.length - 1;
    const exchanged = await send(address, isLast ? undefined : (endsAt - performance.now()) / 2);
    if (exchanged.kind === 'answered') return exchanged;
    if (exchanged.kind === 'broken') break;
  }
  return { kind: 'unreachable' };
}

function read(response: OutboundResponse | Unanswered): FetchResult {
  if (response.kind !== 'answered') return response;
  const { status } = response;
  if (status !== 200) return { kind: status >= 300 && status < 400 ? 'redirect' : 'unreachable' };
  const document = jsonIn(response);
  return document === undefined ? { kind: 'not_json' } : { kind: 'document', document };
}

/** The JSON object in a response with a JSON media type; undefined for any other body. */
export function jsonIn({ type, body }: Pick<OutboundResponse, 'type' | 'body'>): JsonObject | undefined {
  if (!JSON_TYPE.test(type)) return undefined;
  const value = attempt((): unknown => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)));
  return isJsonObject(value) ? value : undefined;
}
