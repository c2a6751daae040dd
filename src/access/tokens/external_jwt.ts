import { type JWTPayload, jwtVerify } from 'jose';
import { LIMITS } from '../../model/limits.ts';
import type { JsonObject } from '../../model/text/json_object.ts';
import { text } from '../../model/text/text.ts';
import type { ConfiguredIssuer } from '../issuers/issuer_keys.ts';
import type { IssuerKey } from '../issuers/jwk_set.ts';
import { parseJsonWithUniqueKeys } from './unique_key_json.ts';
import { REFUSED_HEADERS } from './verified_tokens.ts';

export interface JwtIssuer {
  readonly issuer: Pick<ConfiguredIssuer['issuer'], 'issuer' | 'algorithms'>;
  readonly keys: ConfiguredIssuer['keys'];
}

/** What one kind of token of an external issuer must have. */
interface ExternalJwtKind {
  readonly audience: string;
  readonly isType: (typ: unknown) => boolean;
  readonly isMeant?: (claims: JsonObject) => boolean;
  /** Of any lifetime, and without `kid` if the key set has one key. Access tokens are reused: both are refused for them. */
  readonly isIdToken?: boolean;
}

/**
 * The claims of a token that this issuer signed, and the key that verified it; undefined for an invalid token, `unread` if the
 * existence of its key is unknown. Throws as jose does.
 */
export async function verifyExternalJwt(
  { issuer, keys }: JwtIssuer,
  token: string,
  { audience, isType, isMeant = () => true, isIdToken = false }: ExternalJwtKind,
  now: number,
): Promise<{ readonly claims: JWTPayload; readonly key: IssuerKey } | 'unread' | undefined> {
  const parts = parseJwt(token);
  if (!parts) return undefined;
  const header = checkJwtHeader(parts.header, issuer.algorithms, isType);
  // Cheap checks come first, before keys are fetched or a signature is verified.
  if (!header || (header.kid === undefined && !isIdToken)) return undefined;
  const lifetimeMax = isIdToken ? Number.POSITIVE_INFINITY : LIMITS.tokenLifetimeSecondsMax;
  if (!hasSubject(parts.claims, now, lifetimeMax) || !isMeant(parts.claims)) return undefined;
  const key = await keys.find(header.kid);
  if (!key || key === 'unread') return key;
  const { payload } = await jwtVerify(token, key.jwk, {
    issuer: issuer.issuer,
    audience,
    algorithms: [header.algorithm],
    clockTolerance: LIMITS.clockLeewayMs / 1000,
    currentDate: new Date(now),
  });
  return { claims: payload, key };
}

const COMPACT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/**
 * Header and claims of a token in canonical base64url and without duplicate keys; undefined for all others.
 */
function parseJwt(token: string): { readonly header: JsonObject; readonly claims: JsonObject } | undefined {
  const [, head = '', body = '', signature = ''] = COMPACT.exec(token) ?? [];
  if ([head, body, signature].some((part) => Buffer.from(part, 'base64url').toString('base64url') !== part)) {
    return undefined;
  }
  const header = parseJsonWithUniqueKeys(decode(head));
  const claims = parseJsonWithUniqueKeys(decode(body));
  return header && claims ? { header, claims } : undefined;
}

/** Throws if the bytes are not UTF-8. */
function decode(part: string): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(part, 'base64url'));
}

/**
 * The key and algorithm named by a header; undefined if the algorithm is not allowed, or the token brings its
 * own key.
 */
function checkJwtHeader(
  header: JsonObject,
  algorithms: readonly string[],
  isType: (typ: unknown) => boolean,
): { readonly kid: string | undefined; readonly algorithm: string } | undefined {
  const { alg, typ, kid } = header;
  if (REFUSED_HEADERS.some((name) => name in header)) return undefined;
  const algorithm = algorithms.find((each) => each === alg);
  if (algorithm === undefined || (kid !== undefined && typeof kid !== 'string')) return undefined;
  return isType(typ) ? { kid, algorithm } : undefined;
}

const SUBJECT = text(255);

/** Whether a token names its subject, was issued before now, and lives for at most `lifetimeMax` seconds. */
function hasSubject({ sub, iat, exp }: JsonObject, now: number, lifetimeMax: number): boolean {
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > lifetimeMax) return false;
  return iat * 1000 <= now + LIMITS.clockLeewayMs && SUBJECT.safeParse(sub).success;
}
