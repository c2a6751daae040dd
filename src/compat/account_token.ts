import { z } from 'zod';
import type { AuthCache } from '../access/tokens/auth_cache.ts';
import type { JwtKind, OwnJwts } from '../access/tokens/own_jwts.ts';
import type { Clock, Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { identifier } from '../model/rule.ts';
import type { CredentialStore } from '../sign_in/store/credentials.ts';

/** Who signed in, by which password and when: what a renewal keeps. */
export interface AccountSignIn {
  readonly realmId: Uuid;
  readonly userId: Uuid;
  readonly infoId: Uuid;
  /** The version of the password: a token of an earlier one is refused. */
  readonly credentialVersion: string;
  /** When the password was checked, in seconds since the epoch. */
  readonly authTime: number;
}

/** The path of the members that the tokens are for, below the base URL. */
const AUDIENCE_PATH = '/v2/account-members';

const id = () => identifier('a record');

const CLAIMS = z.object({ sub: id(), realm_id: id(), pid: id(), cv: z.string(), auth_time: z.int() });

interface AccountTokenDeps {
  readonly cache: Pick<AuthCache, 'fresh'>;
  readonly jwts: Pick<OwnJwts, 'sign' | 'verify'>;
  readonly credentials: Pick<CredentialStore, 'get'>;
  readonly clock: Pick<Clock, 'now' | 'mintId'>;
}

/**
 * Tokens of account members (docs/wire.md#account-tokens): JWTs by the signing keys of the service, which everybody can verify with
 * its key set, and nobody can use as an access token.
 */
export function openAccountTokens(
  { cache, jwts, credentials, clock: { now, mintId } }: AccountTokenDeps,
  { issuer, installation }: { readonly issuer: string; readonly installation: string },
) {
  const kind: JwtKind = {
    type: 'account-member+jwt',
    issuer,
    audience: issuer + AUDIENCE_PATH,
    requiredClaims: ['sub', 'exp', 'iat', 'jti'],
  };
  const seconds = () => Math.floor(now() / 1000);
  return {
    /** `expiresAt` is in milliseconds since the epoch. Rejects with Fault `unavailable` if no key can sign. */
    async mint(signIn: AccountSignIn, lifetimeSeconds: number) {
      const { realmId, userId, infoId, credentialVersion, authTime } = signIn;
      const { keys } = await cache.fresh();
      const issuedAt = seconds();
      const exp = issuedAt + lifetimeSeconds;
      const claims = {
        ...{ iss: issuer, aud: kind.audience, sub: userId },
        // The one account of a member is the member, and the installation is the store (docs/wire.md#account-tokens).
        ...{ scope: userId, realm_id: realmId, store_id: installation },
        ...{ ancestors: '', account_member_self_management: 'disabled' },
        ...{ iat: issuedAt, exp, jti: mintId(), auth_time: authTime, amr: ['pwd'] },
        ...{ pid: infoId, cv: credentialVersion },
      };
      return { token: await jwts.sign(kind, claims, keys), expiresAt: exp * 1000 };
    },
    /**
     * The sign-in of a token that is valid in this realm; undefined for an invalid or expired token, for a sign-in that is too old, and
     * after its password was changed or deleted.
     */
    async verify(token: string, realmId: Uuid): Promise<AccountSignIn | undefined> {
      const { keys } = await cache.fresh();
      const verified = await jwts.verify(kind, token, keys);
      const claims = verified && CLAIMS.safeParse(verified.payload).data;
      if (!claims || claims.realm_id !== realmId) return undefined;
      const { sub: userId, pid: infoId, cv: credentialVersion, auth_time: authTime } = claims;
      const age = seconds() - authTime;
      // A sign-in by a clock that was ahead counts from that time on: otherwise renewals would end later than LIMITS says.
      if (age > LIMITS.accountSignInSecondsMax || -age * 1000 > LIMITS.clockLeewayMs) return undefined;
      const credential = await credentials.get(realmId, userId, infoId);
      if (credential?.hash === undefined || credential.version !== credentialVersion) return undefined;
      return { realmId, userId, infoId, credentialVersion, authTime };
    },
  };
}
