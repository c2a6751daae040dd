import type { LogKeys } from '../../audit/log_keys.ts';
import type { MaybePromise } from '../../directory/store.ts';
import type { Clock } from '../../domain/id.ts';
import type { PasswordCost } from '../../domain/password.ts';
import { decoyHash, type HashKind, isCheckable, newHashKind } from '../../domain/password_hash.ts';
import type { CredentialStore, StoredHash } from '../../store/auth/credentials.ts';
import type { SignInName } from './credentials.ts';

/** A hash that no password has, and how it would have been made. */
export interface Decoy {
  readonly hash: string;
  readonly isNormalised: boolean;
}

/**
 * Hashes for names that nobody has, so that a check takes as long as for the names of the profile
 * (docs/decisions/0024-sign-in-by-password.md#time).
 */
export interface Decoys {
  /** The same for the same name while the kinds of hashes of its profile are the same. Rejects as the store does. */
  find(name: SignInName): Promise<Decoy>;
}

interface DecoyDeps {
  readonly credentials: Pick<CredentialStore, 'firstHashes'>;
  readonly keys: Pick<LogKeys, 'signInMac'>;
  /** The cost of new hashes: the kind of a profile without hashes. */
  readonly cost: PasswordCost;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** How many passwords of a profile have a kind of hash. */
interface HashKindCount {
  readonly kind: HashKind;
  readonly isNormalised: boolean;
  readonly count: number;
}

/**
 * The kinds of every profile without hashes or with new ones only: one list for all of them saves memory. Its count does not
 * matter, because the only kind of a list is always drawn.
 */
type OnlyNewKind = readonly [HashKindCount];

/** The kinds of hashes of a profile, and when they were read. */
interface KnownKinds {
  readonly kinds: MaybePromise<readonly HashKindCount[]>;
  readonly readAt: number;
}

/** Then the kinds of hashes of a profile are read again. */
const HASH_KINDS_AGE_MS_MAX = 3_600_000;
/** Profiles whose kinds of hashes a process has in memory. The oldest is dropped for another. */
const HASH_KINDS_CACHED_MAX = 10_000;

export function openDecoys({ credentials, keys, cost, clock }: DecoyDeps): Decoys {
  const known = new Map<string, KnownKinds>();
  const onlyNew: OnlyNewKind = [{ kind: newHashKind(cost), isNormalised: true, count: 1 }];

  function remember(key: string, kinds: KnownKinds['kinds']): KnownKinds {
    const entry = { kinds, readAt: clock.monotonic() };
    known.delete(key);
    known.set(key, entry);
    if (known.size > HASH_KINDS_CACHED_MAX) known.delete(known.keys().next().value as string);
    return entry;
  }

  /** A request waits for the hashes of its profile once, until they are dropped from memory. */
  function kindsOf(name: SignInName): KnownKinds['kinds'] {
    const key = `${name.realmId} ${name.profileId}`;
    const earlier = known.get(key);
    if (earlier && clock.monotonic() - earlier.readAt < HASH_KINDS_AGE_MS_MAX) return earlier.kinds;
    const read = Promise.try(credentials.firstHashes, name.realmId, name.profileId);
    const kinds = read.then((hashes) => kindsIn(hashes, onlyNew));
    const entry = remember(key, earlier?.kinds ?? kinds);
    kinds
      .then((found) => remember(key, found))
      .catch(() => {
        // The next request tries again; earlier kinds count for another hour.
        if (!earlier && known.get(key) === entry) known.delete(key);
      });
    return entry.kinds;
  }

  return {
    async find(name) {
      const { realmId, profileId, usernameKey } = name;
      const kinds = await kindsOf(name);
      const mac = keys.signInMac(JSON.stringify(['decoy', realmId, profileId, usernameKey]));
      const { kind, isNormalised } = drawn(kinds, mac);
      return { hash: decoyHash(kind), isNormalised };
    },
  };
}

/**
 * Counts the kinds of hashes that passwords may be checked with. Never empty, and in an order that does not depend on that of the
 * rows, because it decides which name gets which kind.
 */
function kindsIn(hashes: readonly StoredHash[], onlyNew: OnlyNewKind): readonly HashKindCount[] {
  const counts = new Map<string, HashKindCount>();
  for (const { kind, isNormalised } of hashes) {
    if (kind === undefined) continue;
    const name = `${kind} ${isNormalised}`;
    const counted = counts.get(name) ?? { kind, isNormalised, count: 0 };
    counts.set(name, { ...counted, count: counted.count + 1 });
  }
  const kinds = [...counts]
    .filter(([, { kind }]) => isCheckable(decoyHash(kind)))
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([, counted]) => counted);
  const [{ kind: newKind }] = onlyNew;
  return kinds.every(({ kind, isNormalised }) => kind === newKind && isNormalised) ? onlyNew : kinds;
}

const DRAW_BYTES = 6;

/** One of the kinds, weighted by their counts. */
function drawn(kinds: readonly HashKindCount[], mac: Uint8Array): HashKindCount {
  const total = kinds.reduce((sum, { count }) => sum + count, 0);
  let left = (Buffer.from(mac).readUIntBE(0, DRAW_BYTES) / 2 ** (8 * DRAW_BYTES)) * total;
  for (const each of kinds) {
    left -= each.count;
    if (left < 0) return each;
  }
  return kinds.at(-1) as HashKindCount;
}
