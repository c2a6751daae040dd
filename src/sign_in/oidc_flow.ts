import type { Keyring } from '../access/keys/keyring.ts';
import { attempt } from '../model/attempt.ts';
import { type Clock, type Uuid, uuidBytes, uuidText } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';

/** A sign-in as a browser begins it. */
interface FlowRequest {
  readonly realmId: Uuid;
  readonly profileId: Uuid;
  /** That of the profile: once another is in its place, neither state nor code leads anywhere. */
  readonly issuer: string;
  readonly redirectUri: string;
  /** That of the caller. */
  readonly state: string;
  /** 32 bytes as base64url, by S256 (RFC 7636, 4.2). */
  readonly codeChallenge: string;
  readonly reportsReplay: boolean;
}

/** What a state and a code contain. */
interface FlowContent {
  readonly flowId: Uint8Array;
  /** Of issuer and redirect URI. */
  readonly routeDigest: string;
  readonly codeChallenge: string;
  /** In a state the value of the cookie, in a code the profile. */
  readonly id: Uint8Array;
  /** In a state whether replays are reported, in a code whether its text is packed. */
  readonly flag: boolean;
  /** In a state that of the caller, in a code that of the provider. */
  readonly text: Uint8Array;
}

export type OpenedState = NonNullable<ReturnType<ReturnType<typeof openOidcFlow>['openState']>>;

/** Where the parts of the content begin, after the time in milliseconds since the epoch. */
const AT = { flowId: 6, routeDigest: 22, codeChallenge: 54, id: 86, flag: 102, text: 103 } as const;
const ID_BYTES = 16;

/**
 * Seals what a sign-in through an OpenID provider needs into the `state` of the provider's request, and into the code that the caller
 * gets, so that no row is stored for it. Verifier and nonce are HMACs of the flow ID, so that they are in neither.
 */
export function openOidcFlow(
  keyring: Pick<Keyring, 'seal' | 'open' | 'digest'>,
  { now, randomBytes }: Pick<Clock, 'now' | 'randomBytes'>,
) {
  const secretsOf = (flowId: Uint8Array) => ({
    codeVerifier: keyring.digest('oidc', `verifier ${base64url(flowId)}`),
    nonce: keyring.digest('oidc', `nonce ${base64url(flowId)}`),
  });

  function seal(place: ReturnType<typeof placeOf>, content: FlowContent): string {
    const time = Buffer.alloc(AT.flowId);
    time.writeUIntBE(now(), 0, AT.flowId);
    const digests = [bytesOf(content.routeDigest), bytesOf(content.codeChallenge)];
    const rest = [content.id, Uint8Array.of(Number(content.flag)), content.text];
    const plain = Buffer.concat([time, content.flowId, ...digests, ...rest]);
    return base64url(keyring.seal(...place, base64url(plain), 'base64url'));
  }

  /** Undefined if the value was changed, was sealed for another place, or has expired. */
  function open(sealed: string, place: ReturnType<typeof placeOf>, secondsMax: number) {
    const bytes = bytesOf(sealed);
    // Other spellings decode to the same bytes, such as one with another last character.
    if (base64url(bytes) !== sealed) return undefined;
    const opened = attempt(() => keyring.open(...place, bytes, 'base64url'));
    if (opened === undefined) return undefined;
    const plain = bytesOf(opened);
    const age = now() - plain.readUIntBE(0, AT.flowId);
    if (age < -LIMITS.clockLeewayMs || age >= secondsMax * 1_000) return undefined;
    return {
      flowId: plain.subarray(AT.flowId, AT.routeDigest),
      routeDigest: plain.toString('base64url', AT.routeDigest, AT.codeChallenge),
      codeChallenge: plain.toString('base64url', AT.codeChallenge, AT.id),
      id: plain.subarray(AT.id, AT.flag),
      flag: plain[AT.flag] === 1,
      text: plain.subarray(AT.text),
    };
  }

  return {
    begin({ realmId, profileId, codeChallenge, ...request }: FlowRequest) {
      const [flowId, id] = [randomBytes(ID_BYTES), randomBytes(ID_BYTES)];
      const { codeVerifier, nonce } = secretsOf(flowId);
      const { issuer, redirectUri, state, reportsReplay: flag } = request;
      const content = { flowId, routeDigest: digestOf(issuer, redirectUri), codeChallenge, id };
      return {
        state: seal(placeOf('oidc-flow', realmId, profileId), { ...content, flag, text: Buffer.from(state) }),
        ...{ codeChallenge: sha256(codeVerifier), nonce, cookie: cookieOf({ flowId, id }) },
      };
    },
    openState(sealed: string, realmId: Uuid, profileId: Uuid) {
      const opened = open(sealed, placeOf('oidc-flow', realmId, profileId), LIMITS.oidcStateSeconds);
      if (!opened) return undefined;
      const [state, reportsReplay] = [opened.text.toString(), opened.flag];
      return { ...opened, realmId, profileId, state, reportsReplay, cookie: cookieOf(opened) };
    },
    /** The code that the caller gets in place of the provider's, packed as bytes where it is base64url. */
    sealCode(
      { realmId, profileId, ...content }: FlowContent & Pick<FlowRequest, 'realmId' | 'profileId'>,
      providerCode: string,
    ): string {
      const packed = bytesOf(providerCode);
      const flag = base64url(packed) === providerCode;
      const text = flag ? packed : Buffer.from(providerCode);
      return seal(placeOf('oidc-code', realmId), { ...content, id: uuidBytes(profileId), flag, text });
    },
    openCode(sealed: string, realmId: Uuid) {
      const opened = open(sealed, placeOf('oidc-code', realmId), LIMITS.oidcCodeSeconds);
      if (!opened) return undefined;
      const providerCode = opened.text.toString(opened.flag ? 'base64url' : 'utf8');
      return { ...opened, ...secretsOf(opened.flowId), profileId: uuidText(opened.id), providerCode };
    },
    /** The redirect URI of a flow, if it is still one of these, and the issuer still that of the profile. */
    redirectUriOf: ({ routeDigest }: FlowContent, issuer: string, uris: readonly string[]) =>
      uris.find((uri) => digestOf(issuer, uri) === routeDigest),
    /** Whether a code verifier is that of the caller who began the flow (RFC 7636, 4.6). */
    isVerifierOf: ({ codeChallenge }: FlowContent, verifier: string) => sha256(verifier) === codeChallenge,
    /** Whether a browser sent the cookie of the flow. Digests are compared, so that the time of the answer reveals no part of it. */
    isCookieOf: ({ id }: FlowContent, value: string) => sha256(value) === sha256(base64url(id)),
  };
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64url');
const sha256 = (text: string): string => Bun.SHA256.hash(text, 'base64url');
const digestOf = (issuer: string, redirectUri: string): string => sha256(`${issuer} ${redirectUri}`);

/** The name has the first digit of the flow ID: a browser has at most 16 such cookies. */
function cookieOf({ flowId: [first = 0], id }: Pick<FlowContent, 'flowId' | 'id'>) {
  return { name: `authrealm-sign-in-${(first >> 4).toString(16)}`, value: base64url(id) };
}

/** The callback knows realm and profile from its path; the token call names no profile. */
const placeOf = (table: 'oidc-flow' | 'oidc-code', realm: Uuid, id = '') =>
  [table, { table, column: '', realm, id }] as const;
