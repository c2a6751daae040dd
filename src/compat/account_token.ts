import { z } from 'zod';
import type { AuthCache } from '../access/tokens/auth_cache.ts';
import type { JwtKind, OwnJwts } from '../access/tokens/own_jwts.ts';
import type { Clock, Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { oidcProfileInfo } from '../model/resources.ts';
import { identifier } from '../model/rule.ts';
import type { Store } from '../model/store.ts';
import type { CredentialStore } from '../sign_in/store/credentials.ts';

const MECHANISMS = ['password', 'oidc'] as const;

/** Who signed in, by which link and when: what a renewal keeps. */
export interface AccountSignIn {
  readonly mechanism: (typeof MECHANISMS)[number];
  readonly realmId: Uuid;
  readonly userId: Uuid;
  /** The link: the password profile info or the OIDC profile info. */
  readonly infoId: Uuid;
  /** The version of the password, or the revision of the link to a provider: a token of an earlier one is refused. */
  readonly version: string;
  /** When the password or the provider's answer was checked, in seconds since the epoch. */
  readonly authTime: number;
  /** How the end user authenticated (RFC 8176), if it is known. */
  readonly amr: readonly string[] | undefined;
}

/** The path of the members that the tokens are for, below the base URL. */
const AUDIENCE_PATH = '/v2/account-members';

const id = () => identifier('a record');

const CLAIMS = z.object({
  ...{ sub: id(), realm_id: id(), pid: id(), cv: z.string(), auth_time: z.int() },
  mechanism: z.enum(MECHANISMS).default('password'),
  amr: z.array(z.string()).optional(),
});

interface AccountTokenDeps {
  readonly cache: Pick<AuthCache, 'fresh'>;
  readonly jwts: Pick<OwnJwts, 'sign' | 'verify'>;
  readonly credentials: Pick<CredentialStore, 'get'>;
  readonly store: Pick<Store, 'get'>;
  readonly clock: Pick<Clock, 'now' | 'mintId'>;
}

/**
 * Tokens of account members (docs/wire.md#account-tokens): JWTs by the signing keys of the service, which everybody can verify with
 * its key set, and nobody can use as an access token.
 */
export function openAccountTokens(
  { cache, jwts, credentials, store, clock: { now, mintId } }: AccountTokenDeps,
  { issuer, installation }: { readonly issuer: string; readonly installation: string },
) {
  const kind: JwtKind = {
    type: 'account-member+jwt',
    issuer,
    audience: issuer + AUDIENCE_PATH,
    requiredClaims: ['sub', 'exp', 'iat', 'jti'],
  };
  const seconds = () => Math.floor(now() / 1000);

  /** The version of the link of a sign-in now; undefined if there is none that a sign-in may use. */
  async function versionOf({ mechanism, realmId, userId, infoId }: AccountSignIn) {
    if (mechanism === 'oidc') return (await store.get(oidcProfileInfo, [realmId, userId, infoId]))?.revision;
    const credential = await credentials.get(realmId, userId, infoId);
    return credential?.hash && credential.version;
  }

  return {
    /** `expiresAt` is in milliseconds since the epoch. Rejects with Fault `unavailable` if no key can sign. */
    async mint(signIn: AccountSignIn, lifetimeSeconds: number) {
      const { mechanism, realmId, userId, infoId, version, authTime, amr } = signIn;
      const { keys } = await cache.fresh();
      const issuedAt = seconds();
      const exp = issuedAt + lifetimeSeconds;
      const claims = {
        ...{ iss: issuer, aud: kind.audience, sub: userId },
        // The one account of a member is the member, and the installation is the store (docs/wire.md#account-tokens).
        ...{ scope: userId, realm_id: realmId, store_id: installation },
        ...{ ancestors: '', account_member_self_management: 'disabled' },
        ...{ iat: issuedAt, exp, jti: mintId(), auth_time: authTime, ...(amr && { amr }) },
        ...{ mechanism, pid: infoId, cv: version },
      };
      return { token: await jwts.sign(kind, claims, keys), expiresAt: exp * 1000 };
    },
    /**
     * The sign-in of a token that is valid in this realm; undefined for an invalid or expired token, for a sign-in that is too old, and
     * after its password or link was changed or deleted.
     */
    async verify(token: string, realmId: Uuid): Promise<AccountSignIn | undefined> {
      const { keys } = await cache.fresh();
      const verified = await jwts.verify(kind, token, keys);
      const claims = verified && CLAIMS.safeParse(verified.payload).data;
      if (!claims || claims.realm_id !== realmId) return undefined;
      const { mechanism, sub: userId, pid: infoId, cv: version, auth_time: authTime, amr } = claims;
      const age = seconds() - authTime;
      // A sign-in by a clock that was ahead counts from that time on: otherwise renewals would end later than LIMITS says.
      if (age > LIMITS.accountSignInSecondsMax || -age * 1000 > LIMITS.clockLeewayMs) return undefined;
      const signIn = { mechanism, realmId, userId, infoId, version, authTime, amr };
      return (await versionOf(signIn)) === version ? signIn : undefined;
    },
  };
}
