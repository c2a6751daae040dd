import { fetchWithRetry } from '../../support/retry.ts';
import { jsSdk } from './sdks.ts';

const { gateway, MemoryStorageFactory } = jsSdk;

type Options = Parameters<typeof gateway>[0];

/** The JavaScript SDK of storefronts at this URL, with fast retries and no files. */
export function openJsSdk(
  url: string,
  { clientId, secret }: { readonly clientId: string; readonly secret?: string },
  more: Partial<Options> = {},
) {
  const { protocol, host, pathname } = new URL(url);
  return gateway({
    ...{ client_id: clientId, ...(secret === undefined ? {} : { client_secret: secret }) },
    ...{ host: `${host}${pathname.replace(/\/$/, '')}`, protocol: protocol.slice(0, -1) },
    ...{
      custom_fetch: fetchWithRetry,
      disableCart: true,
      storage: new MemoryStorageFactory(),
      retryDelay: 20,
      retryJitter: 5,
    },
    ...more,
  } as Options);
}

/** The reason why a call failed; undefined if it did not. */
export function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
}
