import type { JsonObject } from '../../domain/json_object.ts';
import { LIMITS } from '../../domain/limits.ts';
import { text } from '../../domain/text/text.ts';
import { parseJsonWithUniqueKeys } from './unique_key_json.ts';
import { REFUSED_HEADERS } from './verified_tokens.ts';

/** Parses and pre-checks JWTs of external issuers, before their signature is verified. */

const COMPACT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/**
 * Header and claims of a token in canonical base64url and without duplicate keys; undefined for all others.
 */
export function parseJwt(
  token: string,
): { readonly header: JsonObject; readonly claims: JsonObject } | undefined {
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

export interface ExternalJwtHeader {
  readonly kid: string;
  readonly algorithm: string;
}

/**
 * The key and algorithm named by a header; undefined if the algorithm is not allowed, or the token brings its
 * own key.
 */
export function checkJwtHeader(
  header: JsonObject,
  algorithms: readonly string[],
  isType: (typ: unknown) => boolean,
): ExternalJwtHeader | undefined {
  const { alg, typ, kid } = header;
  if (REFUSED_HEADERS.some((name) => name in header)) return undefined;
  const algorithm = algorithms.find((each) => each === alg);
  if (algorithm === undefined || typeof kid !== 'string') return undefined;
  return isType(typ) ? { kid, algorithm } : undefined;
}

const SUBJECT = text(255);

/**
 * The subject; undefined for a token issued in the future, or with a longer lifetime than our own tokens may
 * have.
 */
export function checkJwtSubject({ sub, iat, exp }: JsonObject, now: number): string | undefined {
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > LIMITS.tokenLifetimeSecondsMax)
    return undefined;
  if (iat * 1000 > now + LIMITS.clockLeewayMs) return undefined;
  return SUBJECT.safeParse(sub).data;
}
