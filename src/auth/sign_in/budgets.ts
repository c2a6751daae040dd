import type { LogKeys } from '../../audit/log_keys.ts';
import type { Clock, Uuid } from '../../domain/id.ts';
import { clientSubnet, type IpAddress, wideSubnet } from '../../domain/ip_address.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { BudgetKey, BudgetStore, BudgetTake } from '../../store/auth/budgets.ts';
import type { SignInName } from './credentials.ts';
import type { DeviceToken } from './device_token.ts';

/** A request for a password check. */
export interface SignInAttempt extends SignInName {
  /** The client that sent the request. */
  readonly clientId: string;
  /** That of the end user; undefined if it is unknown. */
  readonly address: IpAddress | undefined;
  /** A device token that was made for this name. */
  readonly device: DeviceToken | undefined;
}

/** An attempt that is not checked, because a budget is exhausted. */
export interface ThrottledSignIn {
  readonly retryAfterS: number;
}

/** Limits wrong passwords over all processes (docs/decisions/0024-sign-in-by-password.md#budgets). */
export interface SignInBudgets {
  /**
   * Resolves to the attempt to continue with, which has lost its device if the budget of that is exhausted; or how long to
   * wait. Takes nothing. Called before the attempt is queued, and again before the password is checked.
   */
  admit(attempt: SignInAttempt): Promise<SignInAttempt | ThrottledSignIn>;
  /**
   * Must be called after a wrong password, with what `admit` returned last, before another attempt of the same name is checked. If it
   * rejects, the buckets count as exhausted in this process for a while.
   */
  countWrong(attempt: SignInAttempt): Promise<void>;
  /** Until when attempts at a name without a device are not checked; undefined if they are. */
  throttledUntil(name: SignInName): Promise<number | undefined>;
  /** Refills all budgets of a name, in every process within a second. */
  refill(name: SignInName): Promise<void>;
}

/** A burst of `size` wrong passwords, and one more after each `refillMs`. */
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
} as const satisfies Record<string, Budget>;

/** An exhausted bucket is remembered for this long, so that a flood of attempts does not read it for each of them. */
const REMEMBERED_MS_MAX = 1_000;

/**
 * Longest time for which a bucket counts as exhausted where a wrong password could not be stored, in the process that checked it: a
 * database that only reads must not make guesses free, and one failed write should not refuse a user for long.
 */
const UNCOUNTED_MS_MAX = 60_000;

/** 96 bits as base64url. */
const DIGEST_CHARACTERS = 16;

/** A bucket of an attempt. */
interface Bucket {
  readonly key: BudgetKey;
  readonly budget: Budget;
}

type Digest = (...parts: readonly string[]) => string;

const digestsOf =
  (keys: Pick<LogKeys, 'signInMac'>): Digest =>
  (...parts) =>
    Buffer.from(keys.signInMac(JSON.stringify(['budget', ...parts])))
      .toString('base64url')
      .slice(0, DIGEST_CHARACTERS);

const nameDigest = (digest: Digest, { realmId, profileId, usernameKey }: SignInName): string =>
  digest('name', realmId, profileId, usernameKey);

/** Deletes the buckets of a name. */
export function removeBuckets(
  store: Pick<BudgetStore, 'removeName'>,
  keys: Pick<LogKeys, 'signInMac'>,
  name: SignInName,
): Promise<void> {
  return store.removeName(name.realmId, nameDigest(digestsOf(keys), name));
}

/** The buckets of an attempt with a device, and of one without. */
function openBuckets(keys: Pick<LogKeys, 'signInMac'>) {
  const digest = digestsOf(keys);
  return {
    ofDevice(name: SignInName, { id }: DeviceToken): readonly Bucket[] {
      const source = digest('device', name.realmId, name.profileId, id);
      return [bucketOf(BUDGETS.device, { name: nameDigest(digest, name), source })];
    },
    ofStranger(attempt: SignInName & Pick<SignInAttempt, 'address'>): readonly Bucket[] {
      const { realmId, profileId, address } = attempt;
      const name = nameDigest(digest, attempt);
      const ofName = bucketOf(BUDGETS.name, { name, source: '' });
      if (address === undefined) return [ofName];
      const sourceOf = (network: string) => digest('network', realmId, profileId, network);
      const source = sourceOf(clientSubnet(address));
      const wide = wideSubnet(address);
      return [
        ofName,
        bucketOf(BUDGETS.networkAndName, { name, source }),
        bucketOf(BUDGETS.network, { name: '', source }),
        ...(wide === address ? [] : [bucketOf(BUDGETS.wideNetwork, { name: '', source: sourceOf(wide) })]),
      ];
    },
  };
}

function bucketOf(budget: Budget, key: Omit<BudgetKey, 'kind'>): Bucket {
  return { key: { ...key, kind: budget.kind }, budget };
}

const windowMs = ({ size, refillMs }: Budget): number => size * refillMs;

/**
 * How far ahead a bucket can be full. An empty one is full after its window; processes that took the last token at the same time
 * have left it with less than nothing.
 */
const fullAtMax = ({ budget }: Bucket, now: number): number => now + 2 * windowMs(budget);

/** Milliseconds until it has a token; 0 or less if it has one. */
const waitMsOf = ({ budget }: Bucket, fullAt: number, now: number): number =>
  fullAt + budget.refillMs - windowMs(budget) - now;

const takeOf = (bucket: Bucket, now: number): BudgetTake => {
  const { refillMs } = bucket.budget;
  return { ...bucket.key, fullAt: now + refillMs, refillMs, fullAtMax: fullAtMax(bucket, now) };
};

/** Empties a bucket that was filled by a clock that has been set back since: with that time it would stay exhausted for long. */
const emptying = ({ key, budget }: Bucket, now: number): BudgetTake => {
  const fullAt = now + windowMs(budget);
  return { ...key, fullAt, refillMs: 0, fullAtMax: fullAt };
};

export function openSignInBudgets(
  store: BudgetStore,
  keys: Pick<LogKeys, 'signInMac'>,
  { now, monotonic }: Pick<Clock, 'now' | 'monotonic'>,
): SignInBudgets {
  const buckets = openBuckets(keys);
  const exhausted = openExhausted(monotonic);

  /** Milliseconds until each of these buckets has a token; 0 if all have one. */
  async function waitMs(realmId: Uuid, wanted: readonly Bucket[]): Promise<number> {
    const remembered = exhausted.waitMs(realmId, wanted);
    if (remembered > 0) return remembered;
    const fullAt = await store.fullAt(
      realmId,
      wanted.map(({ key }) => key),
    );
    const time = now();
    const stale = wanted.filter((bucket, at) => (fullAt[at] ?? 0) > fullAtMax(bucket, time));
    if (stale.length > 0) {
      const emptied = stale.map((bucket) => emptying(bucket, time));
      await store.take(realmId, emptied);
      return Math.max(...stale.map(({ budget }) => budget.refillMs));
    }
    const waits = wanted.map((bucket, at) => waitMsOf(bucket, fullAt[at] ?? 0, time));
    for (const [at, bucket] of wanted.entries()) exhausted.remember(realmId, bucket, waits[at] ?? 0);
    return Math.max(0, ...waits);
  }

  return {
    async admit(attempt) {
      const { realmId, device } = attempt;
      if (device && (await waitMs(realmId, buckets.ofDevice(attempt, device))) === 0) return attempt;
      const wait = await waitMs(realmId, buckets.ofStranger(attempt));
      return wait === 0 ? { ...attempt, device: undefined } : throttled(wait);
    },
    async countWrong(attempt) {
      const { realmId, device } = attempt;
      const taken = device ? buckets.ofDevice(attempt, device) : buckets.ofStranger(attempt);
      const time = now();
      const takes = taken.map((bucket) => takeOf(bucket, time));
      try {
        await store.take(realmId, takes);
      } catch (error) {
        for (const bucket of taken) exhausted.rememberUncounted(realmId, bucket);
        throw error;
      }
    },
    async throttledUntil(name) {
      const wait = await waitMs(name.realmId, buckets.ofStranger({ ...name, address: undefined }));
      return wait === 0 ? undefined : now() + wait;
    },
    async refill(name) {
      await removeBuckets(store, keys, name);
      exhausted.clear();
    },
  };
}

function throttled(waitMs: number): ThrottledSignIn {
  return { retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)) };
}

/** Exhausted buckets, for REMEMBERED_MS_MAX, and those of wrong passwords that are not stored. */
function openExhausted(monotonic: () => number) {
  /** Until when each bucket is remembered, and until when it is exhausted. */
  const known = new Map<string, { readonly until: number; readonly endsAt: number }>();
  const nameOf = (realmId: Uuid, { name, kind, source }: BudgetKey) => `${realmId} ${kind} ${name} ${source}`;

  function set(name: string, wait: number, ms: number): void {
    const at = monotonic();
    // A read that began before a wrong password was not stored must not overwrite it.
    if (at + ms <= (known.get(name)?.until ?? 0)) return;
    known.delete(name);
    if (wait <= 0) return;
    known.set(name, { until: at + ms, endsAt: at + wait });
    if (known.size > LIMITS.rateBucketsMax) known.delete(known.keys().next().value as string);
  }

  return {
    /** Milliseconds until these buckets have a token, as far as one is remembered. */
    waitMs(realmId: Uuid, wanted: readonly Bucket[]): number {
      const at = monotonic();
      let wait = 0;
      for (const { key } of wanted) {
        const found = known.get(nameOf(realmId, key));
        if (found && at < found.until) wait = Math.max(wait, found.endsAt - at);
      }
      return wait;
    },
    remember(realmId: Uuid, { key }: Bucket, wait: number): void {
      set(nameOf(realmId, key), wait, Math.min(wait, REMEMBERED_MS_MAX));
    },
    rememberUncounted(realmId: Uuid, { key, budget }: Bucket): void {
      const wait = Math.min(budget.refillMs, UNCOUNTED_MS_MAX);
      set(nameOf(realmId, key), wait, wait);
    },
    clear: () => known.clear(),
  };
}
