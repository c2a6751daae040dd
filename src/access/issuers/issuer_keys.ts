import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { MaybePromise } from '../../model/store.ts';
import type { GuardedFetch } from '../outbound/guarded_fetch.ts';
import type { ExternalIssuer } from './issuers_file.ts';
import { type IssuerKey, type KeySetFailure, readKeySet } from './jwk_set.ts';
import { openSharedRead } from './shared_read.ts';

export type KeySetOutcome = 'read' | KeySetFailure;

interface IssuerKeysDeps {
  readonly fetchDocument: GuardedFetch;
  /** Finds the URL of keys without a configured one. Default: in a discovery document read for each key set. */
  readonly discover?: Parameters<typeof readKeySet>[2];
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Called with the outcome of reading the keys of the issuer of this name, when it differs from the previous one. */
  readonly note: (outcome: KeySetOutcome, name: string) => void;
}

export interface ConfiguredIssuer {
  readonly issuer: ExternalIssuer;
  readonly keys: ReturnType<typeof openIssuerKeys>;
}

/** The configured issuers by their `iss`. */
export function openIssuers(
  issuers: readonly ExternalIssuer[],
  deps: IssuerKeysDeps,
): ReadonlyMap<string, ConfiguredIssuer> {
  return new Map(issuers.map((issuer) => [issuer.issuer, { issuer, keys: openIssuerKeys(issuer, deps) }]));
}

/**
 * Reads the key set on first use, every `issuerKeysFreshMs`, and when a key is unknown, but at least
 * `issuerKeysPauseMs` apart. While the issuer cannot be reached the cached set is used, up to an age of
 * `issuerKeysAgeMsMax`.
 */
export function openIssuerKeys(
  issuer: Pick<ExternalIssuer, 'name' | 'issuer' | 'jwksUri'>,
  { fetchDocument, discover, clock, note }: IssuerKeysDeps,
) {
  let keys: ReadonlyMap<string | undefined, IssuerKey> = new Map();
  let readAt = Number.NEGATIVE_INFINITY;
  let requestedAt = Number.NEGATIVE_INFINITY;
  let outcome: KeySetOutcome | undefined;

  const reads = openSharedRead(async () => {
    requestedAt = clock.monotonic();
    const found = await readKeySet(issuer, fetchDocument, discover);
    if (typeof found !== 'string') {
      keys = new Map([...found].map(([kid, key]) => [kid, reuseUnchangedKey(keys.get(kid), key)]));
      readAt = clock.monotonic();
    }
    const current = typeof found === 'string' ? found : 'read';
    if (current !== outcome) note(current, issuer.name);
    outcome = current;
  });
  const mayRead = () => reads.isRunning() || clock.monotonic() - requestedAt >= LIMITS.issuerKeysPauseMs;

  function cachedKey(kid: string | undefined): IssuerKey | undefined {
    const age = clock.monotonic() - readAt;
    if (age >= LIMITS.issuerKeysFreshMs && mayRead()) reads.start();
    return age < LIMITS.issuerKeysAgeMsMax ? keys.get(kid) : undefined;
  }

  /** The result for an unknown key: undefined if the key set is up to date, else `unread`. */
  function unknownKey(): 'unread' | undefined {
    const isRead = outcome === 'read' && clock.monotonic() - readAt < LIMITS.issuerKeysAgeMsMax;
    return isRead && !reads.isRunning() ? undefined : 'unread';
  }

  return {
    /**
     * The key with this `kid`; for undefined the only key of the set. For an unknown key the key set is read again, rate
     * limited. `unread` if the key set cannot be read, so that the existence of the key is unknown.
     */
    find(kid: string | undefined): MaybePromise<IssuerKey | 'unread' | undefined> {
      const key = cachedKey(kid);
      if (key) return key;
      return mayRead() ? reads.wait().then(() => cachedKey(kid) ?? unknownKey()) : unknownKey();
    },
    /** Whether the issuer still publishes this key. */
    holds: (key: IssuerKey): boolean => cachedKey(key.kid) === key,
  };
}

/** Keeps the cached object of an unchanged key, so that tokens verified with it stay valid. */
function reuseUnchangedKey(cachedKey: IssuerKey | undefined, read: IssuerKey): IssuerKey {
  return cachedKey && Bun.deepEquals(cachedKey, read) ? cachedKey : read;
}
