import { type JWTPayload, jwtVerify } from 'jose';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import {
  type FetchDocument,
  type IssuerKeys,
  type KeySetOutcome,
  openIssuerKeys,
} from '../issuers/issuer_keys.ts';
import { type ExternalIssuer, normalizeTyp } from '../issuers/issuers_file.ts';
import type { Keyring } from '../keys/keyring.ts';
import { rightsFromClaims } from './claim_rights.ts';
import { checkJwtHeader, checkJwtSubject, parseJwt } from './external_jwt.ts';
import type { VerificationOutcome } from './verified_tokens.ts';

/** Verifies tokens of the issuers that the operator configured. */
export interface ExternalTokens {
  /** Undefined for an invalid token, `unchecked` if the issuer's keys cannot be read. Never rejects. */
  verify(token: string, issuer: string): Promise<VerificationOutcome>;
}

export interface IssuersDeps {
  readonly issuers: readonly ExternalIssuer[];
  readonly fetchDocument: FetchDocument;
  readonly clock: Clock;
  /** Called with the outcome of reading an issuer's keys, when it differs from the previous one. */
  readonly note: (issuer: string, outcome: KeySetOutcome) => void;
}

/** A configured issuer and its cached keys. */
export interface ConfiguredIssuer {
  readonly issuer: ExternalIssuer;
  readonly keys: IssuerKeys;
}

/** The configured issuers by their `iss`. */
export function openIssuers(options: IssuersDeps): ReadonlyMap<string, ConfiguredIssuer> {
  const { issuers, fetchDocument, clock, note } = options;
  return new Map(
    issuers.map((issuer) => {
      const onKeyOutcome = (outcome: KeySetOutcome) => note(issuer.name, outcome);
      const keys = openIssuerKeys(issuer, { fetchDocument, clock, note: onKeyOutcome });
      return [issuer.issuer, { issuer, keys }];
    }),
  );
}

export interface ExternalTokensDeps {
  readonly keyring: Pick<Keyring, 'digest'>;
  readonly clock: Pick<Clock, 'now'>;
}

export function openExternalTokens(
  known: ReadonlyMap<string, ConfiguredIssuer>,
  options: ExternalTokensDeps,
): ExternalTokens {
  return {
    async verify(token, issuer) {
      const configured = known.get(issuer);
      try {
        return configured && (await verifyBy(configured, token, options));
      } catch {
        // jose throws the reason why a token is invalid; callers get none (RFC 6750, 3.1).
        return undefined;
      }
    },
  };
}

async function verifyBy(
  { issuer, keys }: ConfiguredIssuer,
  token: string,
  options: ExternalTokensDeps,
): Promise<VerificationOutcome> {
  const now = options.clock.now();
  const parts = parseJwt(token);
  if (!parts) return undefined;
  const isType = (typ: unknown) => typeof typ === 'string' && normalizeTyp(typ) === issuer.type;
  const header = checkJwtHeader(parts.header, issuer.algorithms, isType);
  const subject = checkJwtSubject(parts.claims, now);
  // Cheap checks come first, before keys are fetched or a signature is verified.
  if (!header || subject === undefined) return undefined;
  const key = await keys.find(header.kid);
  if (!key) return undefined;
  if (key === 'unread') return 'unchecked';
  const { payload } = await jwtVerify(token, await key.forAlgorithm(header.algorithm), {
    issuer: issuer.issuer,
    audience: issuer.audience,
    algorithms: [header.algorithm],
    clockTolerance: LIMITS.clockLeewayMs / 1000,
    currentDate: new Date(now),
  });
  const principal: Principal = {
    clientId: externalActor(issuer, subject, options.keyring),
    ...rightsFromClaims(parts.claims, issuer.rights),
  };
  return {
    notBefore: instantOf(payload, 'nbf'),
    expiresAt: instantOf(payload, 'exp'),
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

function instantOf(claims: JWTPayload, name: 'nbf' | 'exp'): number {
  return (claims[name] ?? 0) * 1000;
}
