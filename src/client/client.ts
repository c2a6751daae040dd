import { isLoopbackHost } from '../model/loopback.ts';
import type { CollectionName } from '../model/resources.ts';
import type { ServiceConnection, ServiceOptions, ServiceRequest } from './attempt.ts';
import { openBatch, type WriteBatch } from './batch.ts';
import { BOUNDS } from './bounds.ts';
import { collectionMethods } from './calls.ts';
import type { CollectionOf, Described } from './collection.ts';
import { sendWithRetries } from './exchange.ts';
import { includingMethods } from './including.ts';
import { searchMethods } from './lists.ts';
import type { ResourceRecord } from './record_types.ts';
import { type SignInMethods, signInMethods } from './sign_in.ts';
import { clientCredentialsIdentity, tokenIdentity } from './token.ts';
import { WIRE_FORMATS, type WireFormat } from './wires.ts';

export type { Fetch } from './attempt.ts';
export type { BatchRequest, BatchResult } from './batch.ts';
export type * from './collection.ts';
export { AuthrealmError, type ErrorObject, isAbsent, isStale } from './error.ts';
export * from './filter.ts';
export type * from './record_types.ts';
export type * from './sign_in.ts';

/**
 * The credentials: a client ID with its secret, or a function that returns a token and is called before each attempt.
 * `connect` throws for undefined ones, so that variables of the environment can be passed as they are.
 */
export type ConnectOptions = ServiceOptions &
  (
    | { readonly clientId: string | undefined; readonly clientSecret: string | undefined }
    | { readonly token: () => Promise<string> }
  );

/** The service, one collection per resource. */
export type DirectoryClient = { readonly [N in CollectionName]: CollectionOf<Described<N>> } & {
  readonly batch: WriteBatch;
} & SignInMethods;

/** A record of the collection with this name. */
export type Entry<N extends CollectionName> = ResourceRecord<Described<N>>;

/**
 * Returns a client for the service. Sends nothing before the first call. Throws TypeError for invalid options.
 */
export function connect(options: ConnectOptions): DirectoryClient {
  const connection: ServiceConnection = {
    url: serviceUrl(options),
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    retries: wholeNumber('retries', options.retries ?? BOUNDS.retries, 0),
    timeoutMs: wholeNumber('timeoutMs', options.timeoutMs ?? BOUNDS.timeoutMs, 1),
    totalTimeoutMs: wholeNumber('totalTimeoutMs', options.totalTimeoutMs ?? BOUNDS.totalTimeoutMs, 1),
  };
  const identity =
    'token' in options
      ? tokenIdentity(options.token)
      : clientCredentialsIdentity(connection, {
          clientId: given('clientId', options.clientId),
          clientSecret: given('clientSecret', options.clientSecret),
        });
  const send = (request: ServiceRequest) => sendWithRetries(connection, request, identity);
  const openCollection = (wire: WireFormat) => ({
    ...collectionMethods(wire, send),
    ...(wire.isFindable ? searchMethods(wire, send) : {}),
    ...includingMethods(wire, send),
  });
  const collections = Object.entries(WIRE_FORMATS).map(([name, wire]) => [name, openCollection(wire)]);
  // The wire formats are made from the descriptions that the types are inferred from.
  const sendOnce = (request: ServiceRequest) =>
    sendWithRetries({ ...connection, retries: 0 }, request, identity);
  return Object.freeze({
    ...Object.fromEntries(collections),
    batch: openBatch(send),
    ...signInMethods(sendOnce),
  }) as DirectoryClient;
}

function given(name: string, value: string | undefined): string {
  if (!value) throw new TypeError(`${name} is missing: pass it, or set the variable that it is read from`);
  return value;
}

function serviceUrl({ url: raw = '', allowPlainHttp = false }: ServiceOptions): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || /[?#]/.test(raw)) {
    throw new TypeError(
      'url must be an absolute http or https URL such as https://idp.example, without userinfo, query and fragment',
    );
  }
  if (url.protocol === 'http:' && !allowPlainHttp && !isLoopbackHost(url.hostname)) {
    throw new TypeError(
      'url must be https, because http sends secret and tokens unencrypted; if the network is protected otherwise, ' +
        'set allowPlainHttp: true',
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function wholeNumber(name: string, value: number, least: number): number {
  if (!Number.isSafeInteger(value) || value < least)
    throw new TypeError(`${name} must be a whole number of at least ${least}`);
  return value;
}
