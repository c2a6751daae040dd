import type { LogKeys } from '../log/keys.ts';
import type { Clock, Uuid } from '../model/id.ts';
import { clientSubnet, type IpAddress, wideSubnet } from '../model/ip_address.ts';
import { LIMITS } from '../model/limits.ts';
import type { SignInName } from './credentials.ts';
import type { DeviceToken } from './device_token.ts';
import type { BudgetKey, BudgetStore, BudgetTake } from './store/budgets.ts';

/** A request for a password check. */
export interface SignInAttempt extends SignInName {
  /** The client that sent the request. */
  readonly clientId: string;
  /** That of the end user; undefined if it is unknown. */
  readonly address: IpAddress | undefined;
  /** A device token that was made for this name. */
  readonly device: DeviceToken | undefined;
}

type ProfilePlace = Pick<SignInName, 'realmId' | 'profileId'>;

/** An attempt without a password: a sign-up, or an identity that a provider has to confirm. */
interface SourceAttempt extends ProfilePlace, Pick<SignInAttempt, 'clientId' | 'address'> {
  readonly kind: 'sign-up' | 'identity';
}

/** An attempt that is not checked, because a budget is exhausted. */
export interface ThrottledSignIn {
  readonly retryAfterS: number;
}

/** A burst of `size` wrong passwords, or of sign-ups, and one more after each `refillMs`. */
interface Budget {
  readonly kind: number;
  readonly size: number;
  readonly refillMs: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The numbers of kinds are stored. */
const BUDGETS = {
  networkAndName: { kind: 1, size: 10, refillMs: 1.5 * MINUTE_MS },
  /** Of attempts without a device. NIST SP 800-63B, 5.2.2 allows 100. */
  name: { kind: 2, size: 100, refillMs: 10 * MINUTE_MS },
  device: { kind: 3, size: 10, refillMs: 2.4 * HOUR_MS },
  network: { kind: 4, size: 100, refillMs: 9_000 },
  /** Of a /48, which has many /64. */
  wideNetwork: { kind: 5, size: 1_000, refillMs: 900 },
  signUps: { kind: 6, size: 10, refillMs: 1.5 * MINUTE_MS },
  /** Of a client, for sign-ups and identities of end users without an address. */
  client: { kind: 7, size: 60, refillMs: 1_000 },
} as const satisfies Record<string, Budget>;

/** The budgets of a name, by the attempts that each refuses: all without a device, or those of a network or of a device. */
const THROTTLING = {
  without_device: BUDGETS.name,
  network: BUDGETS.networkAndName,
  device: BUDGETS.device,
} as const;

/** A process reads an exhausted bucket once in this time at most, however many attempts arrive. */
const REMEMBERED_MS_MAX = 1_000;

/**
 * A process that cannot store a wrong password counts its buckets as exhausted for this time at most: a read-only database must not
 * make guesses free, and one failed write should not refuse a user for long.
 */
const UNCOUNTED_MS_MAX = 60_000;

/** 96 bits as base64url. */
const DIGEST_CHARACTERS = 16;

type BucketKeys = Pick<LogKeys, 'signInMac'>;

interface Bucket extends Budget, BudgetKey {}

/** Returns the text that a row stores for a username, a device, a network or a client of a profile. */
function digestOf(
  keys: BucketKeys,
  kind: 'name' | 'device' | 'network' | 'client',
  { realmId, profileId }: ProfilePlace,
  text: string,
): string {
  const mac = keys.signInMac(JSON.stringify(['budget', kind, realmId, profileId, text]));
  return Buffer.from(mac).toString('base64url').slice(0, DIGEST_CHARACTERS);
}

/** Returns the bucket of the device of an attempt; for an attempt without a device those of its name and networks. */
function bucketsOf(keys: BucketKeys, attempt: Omit<SignInAttempt, 'clientId'>): readonly Bucket[] {
  const { usernameKey, address, device } = attempt;
  const name = digestOf(keys, 'name', attempt, usernameKey);
  if (device) return [{ ...BUDGETS.device, name, source: digestOf(keys, 'device', attempt, device.id) }];
  const ofName = { ...BUDGETS.name, name, source: '' };
  if (address === undefined) return [ofName];
  const source = digestOf(keys, 'network', attempt, clientSubnet(address));
  return [ofName, { ...BUDGETS.networkAndName, name, source }, ...networkBucketsOf(keys, attempt, address)];
}

/** Returns the buckets of the networks of an address, for all names of a profile. */
function networkBucketsOf(keys: BucketKeys, of: ProfilePlace, address: IpAddress): readonly Bucket[] {
  const ofNetwork = {
    ...{ ...BUDGETS.network, name: '' },
    source: digestOf(keys, 'network', of, clientSubnet(address)),
  };
  const wide = wideSubnet(address);
  if (wide === address) return [ofNetwork];
  return [ofNetwork, { ...BUDGETS.wideNetwork, name: '', source: digestOf(keys, 'network', of, wide) }];
}

/** Returns the buckets of an attempt without a password: those of its networks, or that of its client. */
function sourceBucketsOf(keys: BucketKeys, attempt: SourceAttempt): readonly Bucket[] {
  const { kind, address, clientId } = attempt;
  if (!address) return [{ ...BUDGETS.client, name: '', source: digestOf(keys, 'client', attempt, clientId) }];
  if (kind === 'identity') return networkBucketsOf(keys, attempt, address);
  return [
    { ...BUDGETS.signUps, name: '', source: digestOf(keys, 'network', attempt, clientSubnet(address)) },
  ];
}

const windowMs = ({ size, refillMs }: Budget): number => size * refillMs;

/**
 * Returns the latest instant at which a bucket can be full. An empty bucket is full after its window. Processes that took its last
 * token at the same time left it with less than nothing.
 */
const fullAtMax = (bucket: Bucket, now: number): number => now + 2 * windowMs(bucket);

/** Returns the milliseconds until a bucket has a token; 0 or less if it has one. */
const waitMsOf = (bucket: Budget, fullAt: number, now: number): number =>
  fullAt + bucket.refillMs - windowMs(bucket) - now;

const throttledFor = (wait: number): ThrottledSignIn => ({
  retryAfterS: Math.max(1, Math.ceil(wait / 1000)),
});

const takeOf = (bucket: Bucket, now: number): BudgetTake => ({
  ...bucket,
  fullAt: now + bucket.refillMs,
  fullAtMax: fullAtMax(bucket, now),
});

/** Empties a bucket that was taken from before the clock was set back: by its stored instant it would stay exhausted for too long. */
function emptying(bucket: Bucket, now: number): BudgetTake {
  const fullAt = now + windowMs(bucket);
  return { ...bucket, fullAt, refillMs: 0, fullAtMax: fullAt };
}

export type SignInBudgets = ReturnType<typeof openSignInBudgets>;

/** Limits wrong passwords over all processes (docs/guides/password-guessing.md#budgets). */
export function openSignInBudgets(
  store: BudgetStore,
  keys: BucketKeys,
  { now, monotonic }: Pick<Clock, 'now' | 'monotonic'>,
) {
  const exhausted = openExhausted(monotonic);

  /** Resolves to the milliseconds until all these buckets have a token; 0 if they have one. */
  async function waitMs(realmId: Uuid, wanted: readonly Bucket[]): Promise<number> {
    const remembered = exhausted.waitMs(wanted);
    if (remembered > 0) return remembered;
    const fullAt = await store.fullAt(realmId, wanted);
    const time = now();
    const stale = wanted.filter((bucket, at) => (fullAt[at] ?? 0) > fullAtMax(bucket, time));
    if (stale.length > 0) {
      const emptied = stale.map((bucket) => emptying(bucket, time));
      await store.take(realmId, emptied);
      return Math.max(...stale.map(({ refillMs }) => refillMs));
    }
    const waits = wanted.map((bucket, at) => waitMsOf(bucket, fullAt[at] ?? 0, time));
    for (const [at, bucket] of wanted.entries())
      exhausted.remember(bucket, waits[at] ?? 0, REMEMBERED_MS_MAX);
    return Math.max(0, ...waits);
  }

  /**
   * Resolves to the attempt, without its device if the budget of the device is exhausted; or to the time after which the caller may
   * try again. `admit` takes no token. It is called before the attempt is queued, and again before the password is checked.
   */
  async function admit(attempt: SignInAttempt): Promise<SignInAttempt | ThrottledSignIn> {
    const wait = await waitMs(attempt.realmId, bucketsOf(keys, attempt));
    if (wait === 0) return attempt;
    if (attempt.device) return admit({ ...attempt, device: undefined });
    return throttledFor(wait);
  }

  async function take(realmId: Uuid, buckets: readonly Bucket[]): Promise<void> {
    const time = now();
    try {
      await store.take(
        realmId,
        buckets.map((bucket) => takeOf(bucket, time)),
      );
    } catch (error) {
      for (const bucket of buckets)
        exhausted.remember(bucket, Math.min(bucket.refillMs, UNCOUNTED_MS_MAX), UNCOUNTED_MS_MAX);
      throw error;
    }
  }

  return {
    admit,
    /**
     * Takes a token from each bucket of an attempt. It must be called after a wrong password, with the attempt that `admit` returned
     * last, before another attempt of the same name is checked. If it rejects, this process counts the buckets as exhausted for a while.
     */
    countWrong: (attempt: SignInAttempt): Promise<void> => take(attempt.realmId, bucketsOf(keys, attempt)),
    /** Resolves to the time after which the caller may try again; undefined for an attempt that may be made now. */
    async throttledSource(attempt: SourceAttempt): Promise<ThrottledSignIn | undefined> {
      const wait = await waitMs(attempt.realmId, sourceBucketsOf(keys, attempt));
      return wait > 0 ? throttledFor(wait) : undefined;
    },
    /** Takes a token for a sign-up, or for an identity that its provider did not confirm. */
    takeFromSource: (attempt: SourceAttempt): Promise<void> =>
      take(attempt.realmId, sourceBucketsOf(keys, attempt)),
    /** Resolves to the attempts at a name that are refused, each with the instant until which the last of its kind are. */
    async throttles(name: SignInName) {
      const fullAt = await store.latestOfName(name.realmId, digestOf(keys, 'name', name, name.usernameKey));
      const time = now();
      return Object.entries(THROTTLING).flatMap(([attempts, budget]) => {
        const wait = waitMsOf(budget, fullAt.get(budget.kind) ?? 0, time);
        return wait > 0 ? [{ attempts, until: time + wait }] : [];
      });
    },
    /** Refills all budgets of a name, in every process within a second. */
    async refill(name: SignInName): Promise<void> {
      await store.removeName(name.realmId, digestOf(keys, 'name', name, name.usernameKey));
      exhausted.clear();
    },
  };
}

/** Remembers exhausted buckets in this process. */
function openExhausted(monotonic: () => number) {
  /** `until`: when the process reads the bucket again. `endsAt`: when the bucket has a token. */
  const known = new Map<string, { readonly until: number; readonly endsAt: number }>();
  const nameOf = ({ kind, name, source }: Bucket) => `${kind} ${name} ${source}`;

  return {
    /** Returns the milliseconds until the remembered ones of these buckets have a token; 0 if none is remembered. */
    waitMs(wanted: readonly Bucket[]): number {
      const at = monotonic();
      const waits = wanted.map((bucket) => {
        const found = known.get(nameOf(bucket));
        return found && at < found.until ? found.endsAt - at : 0;
      });
      return Math.max(...waits);
    },
    /** Remembers a bucket that has no token for `wait`, for `msMax` at most. */
    remember(bucket: Bucket, wait: number, msMax: number): void {
      const name = nameOf(bucket);
      const at = monotonic();
      const until = at + Math.min(wait, msMax);
      // A read that began before a failed write must not shorten the time that the failed write set.
      if (wait <= 0 || until <= (known.get(name)?.until ?? 0)) return;
      known.delete(name);
      known.set(name, { until, endsAt: at + wait });
      if (known.size > LIMITS.rateBucketsMax) known.delete(known.keys().next().value as string);
    },
    clear: () => known.clear(),
  };
}
