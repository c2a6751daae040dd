import type { Clock } from '../../domain/id.ts';
import type { PasswordCost } from '../../domain/password.ts';
import { decoyHash, newHashKind } from '../../domain/password_hash.ts';
import type { SignInName } from './budgets.ts';
import type { CredentialStore, HashKindCount } from './credentials.ts';
import type { SignInKeys } from './port.ts';

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
  readonly credentials: Pick<CredentialStore, 'hashKinds'>;
  readonly keys: SignInKeys;
  /** The cost of new hashes: the kind of a profile without hashes. */
  readonly cost: PasswordCost;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** The kinds of hashes of a profile, and when they were read. */
interface KnownKinds {
  readonly kinds: Promise<readonly HashKindCount[]>;
  readonly readAt: number;
}

/** Then the kinds of hashes of a profile are read again. */
const HASH_KINDS_AGE_MS_MAX = 3_600_000;
/** Profiles whose kinds of hashes a process has in memory. The oldest is dropped for another. */
const HASH_KINDS_CACHED_MAX = 1_000;

export function openDecoys({ credentials, keys, cost, clock }: DecoyDeps): Decoys {
  const known = new Map<string, KnownKinds>();
  const ownKinds: readonly HashKindCount[] = [{ kind: newHashKind(cost), isNormalised: true, count: 1 }];

  async function read({ realmId, profileId }: SignInName): Promise<readonly HashKindCount[]> {
    const kinds = await credentials.hashKinds(realmId, profileId);
    // The order of rows is no part of what decides.
    return kinds.length === 0
      ? ownKinds
      : [...kinds].sort((left, right) => (nameOf(left) < nameOf(right) ? -1 : 1));
  }

  function remember(key: string, kinds: Promise<readonly HashKindCount[]>): void {
    known.delete(key);
    known.set(key, { kinds, readAt: clock.monotonic() });
    kinds.catch(() => known.delete(key));
    const [oldest] = known.keys();
    if (known.size > HASH_KINDS_CACHED_MAX && oldest !== undefined) known.delete(oldest);
  }

  /** No request waits for a second reading: until it ends, the first one counts. */
  function kindsOf(name: SignInName): Promise<readonly HashKindCount[]> {
    const key = `${name.realmId} ${name.profileId}`;
    const earlier = known.get(key);
    if (!earlier) {
      const kinds = read(name);
      remember(key, kinds);
      return kinds;
    }
    if (clock.monotonic() - earlier.readAt >= HASH_KINDS_AGE_MS_MAX) {
      known.set(key, { ...earlier, readAt: clock.monotonic() });
      read(name).then(
        (kinds) => remember(key, Promise.resolve(kinds)),
        () => undefined,
      );
    }
    return earlier.kinds;
  }

  return {
    async find(name) {
      const { realmId, profileId, usernameKey } = name;
      const kinds = await kindsOf(name);
      const { kind, isNormalised } = drawn(
        kinds,
        keys.signInMac(JSON.stringify(['decoy', realmId, profileId, usernameKey])),
      );
      return { hash: decoyHash(kind), isNormalised };
    },
  };
}

const nameOf = ({ kind, isNormalised }: HashKindCount) => `${kind} ${isNormalised}`;

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
