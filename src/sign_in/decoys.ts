import type { LogKeys } from '../log/keys.ts';
import type { Clock } from '../model/id.ts';
import type { PasswordCost } from '../model/password.ts';
import { decoyHash, newHashKind } from '../model/password_hash.ts';
import type { SignInName } from './credentials.ts';
import type { CredentialStore, HashKindCount } from './store/credentials.ts';

/** A hash that no password has, and how it would have been made. */
export interface Decoy {
  readonly hash: string;
  readonly isNormalised: boolean;
}

interface DecoyDeps {
  readonly credentials: Pick<CredentialStore, 'hashKinds'>;
  readonly keys: Pick<LogKeys, 'signInMac'>;
  /** The cost of new hashes: the kind of a profile without hashes. */
  readonly cost: PasswordCost;
  readonly clock: Pick<Clock, 'monotonic'>;
}

type HashKinds = Promise<readonly HashKindCount[]>;

/** Then the kinds of hashes of a profile are read again. */
const HASH_KINDS_AGE_MS_MAX = 3_600_000;
/** Profiles whose kinds of hashes a process has in memory. The oldest is dropped for another. */
const HASH_KINDS_CACHED_MAX = 10_000;

export type Decoys = ReturnType<typeof openDecoys>;

/**
 * Hashes for names that nobody has, so that a check takes as long as for the names of the profile
 * (docs/guides/password-guessing.md#time).
 */
export function openDecoys({ credentials, keys, cost, clock }: DecoyDeps) {
  const known = new Map<string, { readonly kinds: HashKinds; readonly readAt: number }>();
  const newHashes: HashKindCount = { kind: newHashKind(cost), isNormalised: true, count: 1 };

  function kindsOf({ realmId, profileId }: SignInName): HashKinds {
    const key = `${realmId} ${profileId}`;
    const earlier = known.get(key);
    if (earlier && clock.monotonic() - earlier.readAt < HASH_KINDS_AGE_MS_MAX) return earlier.kinds;
    const kinds = Promise.try(credentials.hashKinds, realmId, profileId);
    known.delete(key);
    known.set(key, { kinds, readAt: clock.monotonic() });
    if (known.size > HASH_KINDS_CACHED_MAX) known.delete(known.keys().next().value as string);
    // The next request tries again.
    kinds.catch(() => known.delete(key));
    return kinds;
  }

  return {
    /** The same for the same name while the kinds of hashes of its profile are the same. Rejects as the store does. */
    async find(name: SignInName): Promise<Decoy> {
      const { realmId, profileId, usernameKey } = name;
      const kinds = await kindsOf(name);
      const mac = keys.signInMac(JSON.stringify(['decoy', realmId, profileId, usernameKey]));
      const { kind, isNormalised } = drawn(kinds, mac) ?? newHashes;
      return { hash: decoyHash(kind), isNormalised };
    },
  };
}

const DRAW_BYTES = 6;

/** One of the kinds, weighted by their counts; undefined if there is none. */
function drawn(kinds: readonly HashKindCount[], mac: Uint8Array): HashKindCount | undefined {
  const total = kinds.reduce((sum, { count }) => sum + count, 0);
  let left = (Buffer.from(mac).readUIntBE(0, DRAW_BYTES) / 2 ** (8 * DRAW_BYTES)) * total;
  for (const each of kinds) {
    left -= each.count;
    if (left < 0) return each;
  }
  return kinds.at(-1);
}
