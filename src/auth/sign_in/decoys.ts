import type { MaybePromise } from '../../directory/store.ts';
import { type Clock, NIL_UUID, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { PasswordCost } from '../../domain/password.ts';
import { decoyHash, type HashKind, isCheckable, newHashKind } from '../../domain/password_hash.ts';
import type { SignInName } from './budgets.ts';
import type { CredentialStore, StoredHash } from './credentials.ts';
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
  readonly credentials: Pick<CredentialStore, 'firstHashes' | 'hashesAfter'>;
  readonly keys: SignInKeys;
  /** The cost of new hashes: the kind of a profile without hashes. */
  readonly cost: PasswordCost;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Waits until the event loop has time for a page of hashes. */
  readonly turn: () => Promise<void>;
}

/** How many passwords of a profile have a kind of hash. */
interface HashKindCount {
  readonly kind: HashKind;
  readonly isNormalised: boolean;
  count: number;
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

export function openDecoys({ credentials, keys, cost, clock, turn }: DecoyDeps): Decoys {
  const known = new Map<string, KnownKinds>();
  const realmReads = new Map<Uuid, Promise<void>>();
  const onlyNew: OnlyNewKind = [{ kind: newHashKind(cost), isNormalised: true, count: 1 }];

  function remember(key: string, kinds: KnownKinds['kinds']): KnownKinds {
    const entry = { kinds, readAt: clock.monotonic() };
    known.delete(key);
    known.set(key, entry);
    if (known.size > HASH_KINDS_CACHED_MAX) known.delete(known.keys().next().value as string);
    return entry;
  }

  /** Reads every hash of a realm in the background, and counts those of the profiles in memory. */
  async function readRealm(realmId: Uuid): Promise<void> {
    const counts = new Map<Uuid, ReturnType<typeof openKindCounts>>();
    let last: Uuid | undefined = NIL_UUID;
    while (last) {
      await turn();
      const page = await credentials.hashesAfter(realmId, last);
      for (const [profileId, hashes] of Map.groupBy(page, (hash) => hash.profileId)) {
        const ofProfile = counts.get(profileId) ?? openKindCounts(onlyNew);
        counts.set(profileId, ofProfile);
        ofProfile.add(hashes);
      }
      last = page.at(-1)?.infoId;
    }
    for (const [profileId, { read }] of counts) {
      const key = keyOf({ realmId, profileId });
      if (known.has(key)) remember(key, read());
    }
  }

  /** Profiles of one realm share a reading. */
  function readRealmOnce(realmId: Uuid): Promise<void> {
    const reading = realmReads.get(realmId) ?? readRealm(realmId).finally(() => realmReads.delete(realmId));
    realmReads.set(realmId, reading);
    return reading;
  }

  /** A request waits for the first hashes of its profile, once until that is dropped from memory, and for no others. */
  function kindsOf(name: SignInName): KnownKinds['kinds'] {
    const { realmId, profileId } = name;
    const key = keyOf(name);
    const earlier = known.get(key);
    if (earlier && clock.monotonic() - earlier.readAt < HASH_KINDS_AGE_MS_MAX) return earlier.kinds;
    const first = Promise.try(credentials.firstHashes, realmId, profileId);
    const kinds = earlier?.kinds ?? first.then((hashes) => kindsIn(hashes, onlyNew));
    const entry = remember(key, kinds);
    first
      .then(async (hashes) => {
        if (hashes.length < LIMITS.listRecordsInlineMax) remember(key, kindsIn(hashes, onlyNew));
        else await readRealmOnce(realmId);
      })
      .catch(() => {
        // The next request tries again; kinds that were complete count for another hour.
        if (!earlier && known.get(key) === entry) known.delete(key);
      });
    return kinds;
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

const keyOf = ({ realmId, profileId }: Pick<SignInName, 'realmId' | 'profileId'>) =>
  `${realmId} ${profileId}`;

function kindsIn(hashes: readonly StoredHash[], onlyNew: OnlyNewKind): readonly HashKindCount[] {
  const counts = openKindCounts(onlyNew);
  counts.add(hashes);
  return counts.read();
}

/** Counts the kinds of hashes that passwords may be checked with. */
function openKindCounts(onlyNew: OnlyNewKind) {
  const counts = new Map<string, HashKindCount>();
  return {
    add(hashes: readonly StoredHash[]): void {
      for (const { kind, isNormalised } of hashes) {
        if (kind === undefined) continue;
        const name = `${kind} ${isNormalised}`;
        const counted = counts.get(name) ?? { kind, isNormalised, count: 0 };
        counted.count += 1;
        counts.set(name, counted);
      }
    },
    /** Never empty, and in an order that does not depend on that of the rows, because it decides which name gets which kind. */
    read(): readonly HashKindCount[] {
      const kinds = [...counts]
        .filter(([, { kind }]) => isCheckable(decoyHash(kind)))
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .map(([, counted]) => counted);
      const [{ kind: newKind }] = onlyNew;
      return kinds.every(({ kind, isNormalised }) => kind === newKind && isNormalised) ? onlyNew : kinds;
    },
  };
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
