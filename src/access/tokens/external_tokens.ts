import type { Clock } from '../../model/id.ts';
import type { Principal } from '../../model/principal.ts';
import type { ConfiguredIssuer } from '../issuers/issuer_keys.ts';
import { type ExternalIssuer, normalizeTyp } from '../issuers/issuers_file.ts';
import type { Keyring } from '../keys/keyring.ts';
import { combineRights, metRights } from './claim_rights.ts';
import { verifyExternalJwt } from './external_jwt.ts';
import type { VerificationOutcome } from './verified_tokens.ts';

export type VerifyExternalToken = ReturnType<typeof openExternalTokens>;

/**
 * Verifies tokens of the issuers that the operator configured. Undefined for an invalid token, `unchecked` if the issuer's keys
 * cannot be read. Never rejects.
 */
export function openExternalTokens(
  known: ReadonlyMap<string, ConfiguredIssuer>,
  keyring: Pick<Keyring, 'digest'>,
  { now }: Pick<Clock, 'now'>,
) {
  return async (token: string, issuer: string): Promise<VerificationOutcome> => {
    const configured = known.get(issuer);
    // jose throws the reason why a token is invalid; callers get none (RFC 6750, 3.1).
    return configured && verifyBy(configured, token, keyring, now()).catch(() => undefined);
  };
}

async function verifyBy(
  configured: ConfiguredIssuer,
  token: string,
  keyring: Pick<Keyring, 'digest'>,
  now: number,
): Promise<VerificationOutcome> {
  const { issuer, keys } = configured;
  const isType = (typ: unknown) => typeof typ === 'string' && normalizeTyp(typ) === issuer.type;
  const verified = await verifyExternalJwt(configured, token, { audience: issuer.audience, isType }, now);
  if (verified === 'unread') return 'unchecked';
  if (!verified) return undefined;
  const { claims, key } = verified;
  const principal: Principal = {
    clientId: externalActor(issuer, String(claims.sub), keyring),
    ...combineRights(metRights(claims, issuer.rights)),
  };
  return {
    notBefore: (claims.nbf ?? 0) * 1000,
    expiresAt: (claims.exp ?? 0) * 1000,
    resolvePrincipal: () => (keys.holds(key) ? principal : undefined),
  };
}

/**
 * The actor in logs and audit entries: the issuer's name and a keyed digest, because subjects are personal
 * data. No client ID contains a colon.
 */
export function externalActor(
  { name, issuer }: ExternalIssuer,
  subject: string,
  keyring: Pick<Keyring, 'digest'>,
): string {
  const digest = keyring.digest('external-subject', JSON.stringify([issuer, subject]));
  return `${name}:${digest.slice(0, ACTOR_CHARACTERS)}`;
}

/** 132 bits. */
const ACTOR_CHARACTERS = 22;
