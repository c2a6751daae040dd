import { isLoopbackHost } from '../domain/loopback.ts';
import type { CollectionName, DESCRIPTIONS } from '../domain/resources.ts';
import type { Fetch } from './attempt.ts';
import { BOUNDS } from './bounds.ts';
import { callsOf } from './calls.ts';
import type { CollectionOf } from './collection.ts';
import { exchange, type Line, type Request } from './exchange.ts';
import { findingOf } from './lists.ts';
import type { RecordOf } from './shapes.ts';
import { clientIdentity, lentIdentity } from './token.ts';
import { WIRES, type Wire } from './wires.ts';

export type { Fetch } from './attempt.ts';
export type * from './collection.ts';
export { AuthrealmError, type Complaint, isAbsent, isStale } from './error.ts';
export * from './filter.ts';
export type {
  ChangesOf,
  CriteriaOf,
  FieldOf,
  KeyOf,
  NewOf,
  RecordOf,
  ScopeOf,
  SortKey,
  TaggedOf,
} from './shapes.ts';

interface Reach {
  /** Where the service is, with its path prefix if it has one. */
  readonly url: string;
  /**
   * Plain http to a host that is not loopback, over which secret and tokens travel in clear; refused unless true. For
   * networks where something else protects them.
   */
  readonly allowPlainHttp?: boolean;
  /** What sends requests; the `fetch` of the runtime unless given. */
  readonly fetch?: Fetch;
  /** How often a request is sent again where the service is busy or the connection is lost; 4 unless given. */
  readonly retries?: number;
  /** How long one attempt may take; 10,000 unless given. */
  readonly timeoutMs?: number;
  /** How long all attempts of a request and the pauses between them may take; 60,000 unless given. */
  readonly patienceMs?: number;
}

/** Who asks: a client with its secret, or whoever can get a token. `token` is asked before each attempt. */
type Caller =
  | { readonly clientId: string; readonly clientSecret: string }
  | { readonly token: () => Promise<string> };

export type ConnectOptions = Reach & Caller;

type Described<N extends CollectionName> = (typeof DESCRIPTIONS)[N];

/** The directory, one collection for each resource. */
export type Directory = { readonly [N in CollectionName]: CollectionOf<Described<N>> };

/** A record of a collection, by the collection's name. */
export type Entry<N extends CollectionName> = RecordOf<Described<N>>;

/**
 * Speaks to an authrealm. Nothing is sent before the first call. Throws TypeError for options that cannot be right.
 */
export function connect(options: ConnectOptions): Directory {
  const line: Line = {
    url: serviceUrl(options),
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    retries: wholeNumber('retries', options.retries ?? BOUNDS.retries, 0),
    timeoutMs: wholeNumber('timeoutMs', options.timeoutMs ?? BOUNDS.timeoutMs, 1),
    patienceMs: wholeNumber('patienceMs', options.patienceMs ?? BOUNDS.patienceMs, 1),
  };
  const identity = 'token' in options ? lentIdentity(options.token) : clientIdentity(line, options);
  const ask = (request: Request) => exchange(line, request, identity);
  const open = (wire: Wire) => ({
    ...callsOf(wire, ask),
    ...(wire.isFindable ? findingOf(wire, ask) : {}),
  });
  const opened = Object.entries(WIRES).map(([name, wire]) => [name, open(wire)]);
  // The wires say the same as the descriptions that the types are made of.
  return Object.freeze(Object.fromEntries(opened)) as Directory;
}

function serviceUrl({ url: raw, allowPlainHttp = false }: Reach): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || /[?#]/.test(raw)) {
    throw new TypeError('url must be an absolute http or https URL without userinfo, query and fragment');
  }
  if (url.protocol === 'http:' && !allowPlainHttp && !isLoopbackHost(url.hostname)) {
    throw new TypeError(
      'url must be https: over http secret and tokens would cross the network in clear; where something else ' +
        'protects them, say allowPlainHttp: true',
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function wholeNumber(name: string, value: number, least: number): number {
  if (!Number.isSafeInteger(value) || value < least)
    throw new TypeError(`${name} must be a whole number from ${least} on`);
  return value;
}
