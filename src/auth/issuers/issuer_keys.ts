import type { MaybePromise } from '../../directory/store.ts';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { withTimeout } from '../../platform/timeout.ts';
import type { ExternalIssuer } from './issuers_file.ts';
import { type FetchedDocument, type IssuerKey, type KeySetFailure, readKeySet } from './jwk_set.ts';

/**
 * Fetches the JSON object at a URL, in bounded time and size, and never rejects. `hear` is handed what settles when
 * nothing of it goes on any more.
 */
export type FetchDocument = (
  url: string,
  onResolving: (resolving: Promise<unknown>) => void,
) => Promise<FetchedDocument>;

/** How reading a key set went. */
export type KeySetOutcome = 'read' | KeySetFailure;

/** The keys of one issuer, as it published them last. */
export interface IssuerKeys {
  /**
   * The key of this name. One that is unknown may be new: the issuer is asked again, no more often than the limit.
   * `unread` where it does not say which keys it has, so that nobody can tell.
   */
  find(kid: string): MaybePromise<IssuerKey | 'unread' | undefined>;
  /** Whether the issuer still publishes this key. */
  holds(key: IssuerKey): boolean;
}

export interface IssuerKeysOptions {
  readonly fetchDocument: FetchDocument;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Told every outcome that differs from the one before. */
  readonly note: (outcome: KeySetOutcome) => void;
}

/**
 * Reads the key set when it is first needed, again every `issuerKeysFreshMs`, and where a key is unknown, but
 * `issuerKeysPauseMs` apart. What was read counts while the issuer is out of reach, up to `issuerKeysAgeMsMax`.
 */
export function openIssuerKeys(
  issuer: Pick<ExternalIssuer, 'issuer' | 'jwksUri'>,
  { fetchDocument, clock, note }: IssuerKeysOptions,
): IssuerKeys {
  let keys: ReadonlyMap<string, IssuerKey> = new Map();
  let readAt = Number.NEGATIVE_INFINITY;
  let requestedAt = Number.NEGATIVE_INFINITY;
  let outcome: KeySetOutcome | undefined;
  let reading: Promise<void> | undefined;
  let resolving = 0;
  let waiting = 0;

  const onResolving = (settling: Promise<unknown>): void => {
    resolving += 1;
    const leave = () => {
      resolving -= 1;
    };
    settling.then(leave, leave);
  };
  const fetch = (url: string) => fetchDocument(url, onResolving);

  async function read(): Promise<void> {
    const found = await readKeySet(issuer, fetch);
    if (typeof found !== 'string') {
      keys = new Map([...found].map(([kid, key]) => [kid, reuseUnchangedKey(keys.get(kid), key)]));
      readAt = clock.monotonic();
    }
    const current = typeof found === 'string' ? found : 'read';
    if (current !== outcome) note(current);
    outcome = current;
  }

  /** Asks the issuer, or joins who does; undefined where it is too early. A name that still resolves is not asked twice. */
  function refresh(): Promise<void> | undefined {
    if (reading) return reading;
    if (resolving > 0 || clock.monotonic() - requestedAt < LIMITS.issuerKeysPauseMs) return undefined;
    requestedAt = clock.monotonic();
    reading = read().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  function cachedKey(kid: string): IssuerKey | undefined {
    const age = clock.monotonic() - readAt;
    if (age >= LIMITS.issuerKeysFreshMs) refresh();
    return age < LIMITS.issuerKeysAgeMsMax ? keys.get(kid) : undefined;
  }

  /** What a key is that is not known: none, if the set was read the last time and has not become too old. */
  function unknownKey(): 'unread' | undefined {
    const isRead = outcome === 'read' && clock.monotonic() - readAt < LIMITS.issuerKeysAgeMsMax;
    return isRead && !reading ? undefined : 'unread';
  }

  async function wait(kid: string, refreshing: Promise<void>): Promise<IssuerKey | 'unread' | undefined> {
    waiting += 1;
    await withTimeout(refreshing, LIMITS.issuerKeysWaitMsMax, () => undefined);
    waiting -= 1;
    return cachedKey(kid) ?? unknownKey();
  }

  return {
    find(kid) {
      const key = cachedKey(kid);
      if (key) return key;
      const refreshing = refresh();
      return refreshing && waiting < LIMITS.issuerWaitersMax ? wait(kid, refreshing) : unknownKey();
    },
    holds: (key) => cachedKey(key.kid) === key,
  };
}

/** The key that is known, where it is the same: tokens that it opened stay open. */
function reuseUnchangedKey(cachedKey: IssuerKey | undefined, read: IssuerKey): IssuerKey {
  return cachedKey?.text === read.text ? cachedKey : read;
}
