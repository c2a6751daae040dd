import { createHash, timingSafeEqual } from 'node:crypto';
import type { Keyring, Purpose } from '../access/keys/keyring.ts';
import { attempt } from '../model/attempt.ts';
import { type Clock, UUID_BYTES, type Uuid, uuidBytes, uuidText } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';

/** A sign-in through an OpenID provider, as a browser begins it. */
interface OidcFlowRequest {
  readonly realmId: Uuid;
  readonly profileId: Uuid;
  readonly redirectUri: string;
  /** The `state` of the caller. */
  readonly state: string;
  /** 32 bytes as base64url, by S256 (RFC 7636, 4.2). */
  readonly codeChallenge: string;
  readonly reportsReplay: boolean;
}

/** What both sealed values begin with, after the time. */
interface FlowHead {
  readonly flowId: Uint8Array;
  readonly redirectDigest: string;
  readonly codeChallenge: string;
}

export interface OpenedState
  extends FlowHead,
    Pick<OidcFlowRequest, 'realmId' | 'profileId' | 'state' | 'reportsReplay'> {
  readonly cookie: ReturnType<typeof cookieOf>;
}

export type OidcFlow = ReturnType<typeof openOidcFlow>;
export type OpenedCode = NonNullable<ReturnType<OidcFlow['openCode']>>;

const ID_BYTES = 16;
/** Milliseconds since the epoch. */
const TIME_BYTES = 6;
const DIGEST_BYTES = 32;
const HEAD_BYTES = TIME_BYTES + ID_BYTES + 2 * DIGEST_BYTES;
/** By which the clocks of processes may differ. */
const AHEAD_MS_MAX = 30_000;

/**
 * Seals what a sign-in through an OpenID provider needs into the `state` of the provider's request, and into the code that the caller
 * gets, so that no row is stored for it. Both begin with the time, the flow ID, the SHA-256 of the redirect URI and the code challenge.
 * Then a state has the value of the cookie, a flag and the caller's state; a code the profile, a flag and the provider's code. Verifier
 * and nonce are HMACs of the flow ID, so that they are in neither.
 */
export function openOidcFlow(
  keyring: Pick<Keyring, 'seal' | 'openBytes' | 'digest'>,
  { now, randomBytes }: Pick<Clock, 'now' | 'randomBytes'>,
) {
  const secretsOf = (flowId: Uint8Array) => ({
    codeVerifier: keyring.digest('oidc-verifier', base64url(flowId)),
    nonce: keyring.digest('oidc-nonce', base64url(flowId)),
  });

  function seal({ purpose, location }: FlowPlace, head: FlowHead, ...rest: Uint8Array[]): string {
    const time = Buffer.alloc(TIME_BYTES);
    time.writeUIntBE(now(), 0, TIME_BYTES);
    const digests = [head.redirectDigest, head.codeChallenge].map((text) => Buffer.from(text, 'base64url'));
    const plain = Buffer.concat([time, head.flowId, ...digests, ...rest]);
    return base64url(keyring.seal(purpose, location, plain));
  }

  /** Undefined if the value was changed, was sealed for another place, or has expired. */
  function open(sealed: string, { purpose, location }: FlowPlace, secondsMax: number) {
    const bytes = Buffer.from(sealed, 'base64url');
    // Other spellings decode to the same bytes, such as one with another last character.
    if (base64url(bytes) !== sealed) return undefined;
    const plain = attempt(() => keyring.openBytes(purpose, location, bytes));
    const age = plain ? now() - plain.readUIntBE(0, TIME_BYTES) : Number.NaN;
    if (!plain || age < -AHEAD_MS_MAX || age >= secondsMax * 1_000) return undefined;
    const part = (start: number, bytes: number) => plain.subarray(start, start + bytes);
    const head = {
      flowId: part(TIME_BYTES, ID_BYTES),
      redirectDigest: base64url(part(HEAD_BYTES - 2 * DIGEST_BYTES, DIGEST_BYTES)),
      codeChallenge: base64url(part(HEAD_BYTES - DIGEST_BYTES, DIGEST_BYTES)),
    };
    return { head, rest: plain.subarray(HEAD_BYTES) };
  }

  return {
    begin({ realmId, profileId, redirectUri, state, codeChallenge, reportsReplay }: OidcFlowRequest) {
      const [flowId, value] = [randomBytes(ID_BYTES), randomBytes(ID_BYTES)];
      const head = { flowId, redirectDigest: sha256(redirectUri), codeChallenge };
      const { codeVerifier, nonce } = secretsOf(flowId);
      return {
        state: seal(ofState(realmId, profileId), head, value, flagOf(reportsReplay), Buffer.from(state)),
        codeChallenge: sha256(codeVerifier),
        nonce,
        cookie: cookieOf(flowId, value),
      };
    },
    openState(sealed: string, realmId: Uuid, profileId: Uuid): OpenedState | undefined {
      const opened = open(sealed, ofState(realmId, profileId), LIMITS.oidcStateSeconds);
      if (!opened) return undefined;
      const { head, rest } = opened;
      return {
        ...{ realmId, profileId, ...head },
        state: rest.toString('utf8', ID_BYTES + 1),
        cookie: cookieOf(head.flowId, rest.subarray(0, ID_BYTES)),
        reportsReplay: rest[ID_BYTES] === 1,
      };
    },
    /** The code that the caller gets in place of the provider's, packed as bytes where it is base64url. */
    sealCode({ realmId, profileId, ...head }: OpenedState, providerCode: string): string {
      const packed = Buffer.from(providerCode, 'base64url');
      const isPacked = base64url(packed) === providerCode;
      const code = isPacked ? packed : Buffer.from(providerCode);
      return seal(ofCode(realmId), head, uuidBytes(profileId), flagOf(isPacked), code);
    },
    openCode(sealed: string, realmId: Uuid) {
      const opened = open(sealed, ofCode(realmId), LIMITS.oidcCodeSeconds);
      if (!opened) return undefined;
      const { head, rest } = opened;
      return {
        ...{ ...head, ...secretsOf(head.flowId) },
        profileId: uuidText(rest.subarray(0, UUID_BYTES)),
        providerCode: rest.toString(rest[UUID_BYTES] === 1 ? 'base64url' : 'utf8', UUID_BYTES + 1),
      };
    },
    /** The redirect URI of a flow, if it is still one of these. */
    redirectUriOf: ({ redirectDigest }: Pick<FlowHead, 'redirectDigest'>, uris: readonly string[]) =>
      uris.find((uri) => sha256(uri) === redirectDigest),
    /** Whether a code verifier is that of the caller who began the flow (RFC 7636, 4.6). */
    isVerifierOf: ({ codeChallenge }: Pick<FlowHead, 'codeChallenge'>, verifier: string) =>
      sha256(verifier) === codeChallenge,
    /** Whether a browser sent the cookie of the flow. */
    isCookieOf({ cookie }: Pick<OpenedState, 'cookie'>, value: string): boolean {
      const [own, sent] = [Buffer.from(cookie.value), Buffer.from(value)];
      return own.length === sent.length && timingSafeEqual(own, sent);
    },
  };
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url');
const flagOf = (isSet: boolean): Uint8Array => Uint8Array.of(isSet ? 1 : 0);

/** The name has the first digit of the flow ID: a browser has at most 16 such cookies. */
function cookieOf([first = 0]: Uint8Array, value: Uint8Array) {
  return { name: `authrealm-sign-in-${(first >> 4).toString(16)}`, value: base64url(value) };
}

type FlowPlace = ReturnType<typeof placeOf>;

function placeOf(purpose: Purpose, realm: Uuid, id: string) {
  return { purpose, location: { table: purpose, column: '', realm, id } };
}

/** The additional data of a state are its purpose, realm and profile: the callback knows both from its path. */
const ofState = (realm: Uuid, profileId: Uuid) => placeOf('oidc-flow', realm, profileId);

/** Those of a code are its purpose and realm alone: the token call names no profile, so it is in the sealed value. */
const ofCode = (realm: Uuid) => placeOf('oidc-code', realm, '');
