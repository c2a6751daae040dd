import { LIMITS } from '../../domain/limits.ts';
import { text } from '../../domain/text/text.ts';
import { type JsonObject, parseJsonWithUniqueKeys } from './unique_key_json.ts';
import { REFUSED_HEADERS } from './verified_tokens.ts';

/** Reads tokens that other issuers signed, as far as that can be done before anything of them is believed. */

const COMPACT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Header and claims of a token in its one spelling, none of whose members stands twice. */
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

/** Throws where the bytes are not UTF-8. */
function decode(part: string): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(part, 'base64url'));
}

export interface ExternalJwtHeader {
  readonly kid: string;
  readonly algorithm: string;
}

/** By which key and algorithm it says it is signed; undefined where that is none of these, or it brings its own. */
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

/** The subject of claims whose time may have come; one that lives for longer than ours could is none. */
export function checkJwtSubject({ sub, iat, exp }: JsonObject, now: number): string | undefined {
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > LIMITS.tokenLifetimeSecondsMax)
    return undefined;
  if (iat * 1000 > now + LIMITS.clockLeewayMs) return undefined;
  return SUBJECT.safeParse(sub).data;
}
