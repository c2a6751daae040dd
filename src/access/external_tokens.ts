import { type JWTPayload, jwtVerify } from 'jose';
import type { Ambient } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Principal } from '../domain/principal.ts';
import { text } from '../domain/text.ts';
import { rightsOf } from './claim_rights.ts';
import { type FetchDocument, type IssuerKeys, type KeysRead, openIssuerKeys } from './issuer_keys.ts';
import { type ExternalIssuer, typeOf } from './issuers_file.ts';
import type { Keyring } from './keyring.ts';
import { type JsonObject, parseSoleMembers } from './sole_members.ts';
import { REFUSED_HEADERS, type Verified } from './verified.ts';

/** Believes tokens of issuers that the operator named. */
export interface ExternalTokens {
  /**
   * What the token of this issuer vouches for; undefined where it is not to be trusted, `unchecked` where the issuer does
   * not say by which keys. Never rejects.
   */
  verify(token: string, issuer: string): Promise<Verified | 'unchecked' | undefined>;
}

export interface ExternalOptions {
  readonly issuers: readonly ExternalIssuer[];
  readonly fetchDocument: FetchDocument;
  readonly keyring: Pick<Keyring, 'digest'>;
  readonly ambient: Ambient;
  /** Told how reading the keys of an issuer went, where that differs from the time before. */
  readonly note: (issuer: string, outcome: KeysRead) => void;
}

interface Known {
  readonly issuer: ExternalIssuer;
  readonly keys: IssuerKeys;
}

export function openExternalTokens(options: ExternalOptions): ExternalTokens {
  const { issuers, fetchDocument, ambient, note } = options;
  const known = new Map<string, Known>();
  for (const issuer of issuers) {
    const noteOf = (outcome: KeysRead) => note(issuer.name, outcome);
    known.set(issuer.issuer, {
      issuer,
      keys: openIssuerKeys(issuer, { fetchDocument, ambient, note: noteOf }),
    });
  }
  return {
    async verify(token, issuer) {
      const of = known.get(issuer);
      try {
        return of && (await verifyOf(of, token, options));
      } catch {
        // jose says by what it throws why a token is none; the caller is not told.
        return undefined;
      }
    },
  };
}

async function verifyOf(
  { issuer, keys }: Known,
  token: string,
  options: ExternalOptions,
): Promise<Verified | 'unchecked' | undefined> {
  const now = options.ambient.now();
  const parts = readParts(token);
  if (!parts) return undefined;
  const header = readHeader(parts.header, issuer);
  const subject = readSubject(parts.claims, now);
  // Whatever can be refused for free is refused before the issuer is asked, or a signature is checked.
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
    clientId: actorOf(issuer, subject, options.keyring),
    ...rightsOf(parts.claims, issuer.rights),
  };
  return {
    notBefore: instantOf(payload, 'nbf'),
    expiresAt: instantOf(payload, 'exp'),
    principalIn: () => (keys.holds(key) ? principal : undefined),
  };
}

/**
 * Who it is, for logs and the entries of what was done: the issuer's name and a keyed digest, because subjects are
 * personal values. No client of ours has a colon in its name.
 */
function actorOf(
  { name, issuer }: ExternalIssuer,
  subject: string,
  keyring: Pick<Keyring, 'digest'>,
): string {
  const digest = keyring.digest('external-subject', JSON.stringify([issuer, subject]));
  return `${name}:${digest.slice(0, ACTOR_CHARACTERS)}`;
}

/** 132 bits. */
const ACTOR_CHARACTERS = 22;

const COMPACT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Header and claims of a token in its one spelling, none of whose members stands twice. */
function readParts(token: string): { readonly header: JsonObject; readonly claims: JsonObject } | undefined {
  const [, head = '', body = '', signature = ''] = COMPACT.exec(token) ?? [];
  if ([head, body, signature].some((part) => Buffer.from(part, 'base64url').toString('base64url') !== part)) {
    return undefined;
  }
  const header = parseSoleMembers(decode(head));
  const claims = parseSoleMembers(decode(body));
  return header && claims ? { header, claims } : undefined;
}

/** Throws where the bytes are not UTF-8. */
function decode(part: string): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(part, 'base64url'));
}

interface Header {
  readonly kid: string;
  readonly algorithm: string;
}

function readHeader(header: JsonObject, { type, algorithms }: ExternalIssuer): Header | undefined {
  const { alg, typ, kid } = header;
  if (REFUSED_HEADERS.some((name) => name in header)) return undefined;
  const algorithm = algorithms.find((each) => each === alg);
  if (algorithm === undefined || typeof kid !== 'string') return undefined;
  return typeof typ === 'string' && typeOf(typ) === type ? { kid, algorithm } : undefined;
}

const SUBJECT = text(255);

/** The subject of claims whose time may have come; one that lives for longer than ours could is none. */
function readSubject({ sub, iat, exp }: JsonObject, now: number): string | undefined {
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > LIMITS.tokenLifetimeSecondsMax)
    return undefined;
  if (iat * 1000 > now + LIMITS.clockLeewayMs) return undefined;
  return SUBJECT.safeParse(sub).data;
}

function instantOf(claims: JWTPayload, name: 'nbf' | 'exp'): number {
  return (claims[name] ?? 0) * 1000;
}
