import { importPrivateKey } from '../../src/access/keys/signing.ts';
import type { OpenDatabase } from '../../src/app/open_database.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Service } from './service.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Signs any header and payload as text, so that no library corrects them. */
export type Sign = (input: string) => Promise<Uint8Array>;

export function encode(text: string | Uint8Array): string {
  return Buffer.from(text).toString('base64url');
}

export async function compact(header: string, payload: string, sign: Sign): Promise<string> {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${encode(await sign(input))}`;
}

/** The token with another last character that decodes to the same bytes. */
export function respell(token: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const other = token.slice(0, -1) + letters[letters.indexOf(token.at(-1) ?? '') + 1];
  const [one, two] = [token, other].map((each) => Buffer.from(each.split('.').at(-1) ?? '', 'base64url'));
  if (two === undefined || !one?.equals(two)) throw new Error('the last character has no other spelling');
  return other;
}

export interface TokenForge {
  /** The key that signs the service's own tokens. */
  readonly kid: string;
  readonly publicJwk: Json;
  readonly sign: Sign;
  /** The header and claims that the service would sign for this client now. */
  header(): Json;
  claims(clientId: string): Json;
}

/** Signs tokens with the key of a service, valid and invalid ones. */
export async function openForge({ db, url, clock }: Service): Promise<TokenForge> {
  const table = await db.engine.access.state(undefined);
  const key = table?.signingKeys.find(({ withdrawnAt }) => withdrawnAt === undefined);
  if (!key) throw new Error('no signing key');
  const sign = await signerOf(key, db);
  return {
    kid: key.kid,
    publicJwk: JSON.parse(key.publicJwk),
    sign,
    header: () => ({ alg: 'Ed25519', typ: 'at+jwt', kid: key.kid }),
    claims: (clientId) => {
      const now = Math.floor(clock.now() / 1000);
      return {
        ...{ iss: url, aud: url, sub: clientId, client_id: clientId, jti: systemClock.mintId() },
        ...{ iat: now, nbf: now, exp: now + 600, scope: 'oidc-profile-infos:read', realms: ['*'] },
      };
    },
  };
}

/** Signs with a key of the service. */
export async function signerOf(
  key: Parameters<typeof importPrivateKey>[0],
  { keyring }: Pick<OpenDatabase, 'keyring'>,
): Promise<Sign> {
  return signer(await importPrivateKey(key, keyring));
}

export function signer(key: CryptoKey): Sign {
  return async (input) => new Uint8Array(await crypto.subtle.sign('Ed25519', key, Buffer.from(input)));
}

/** A key pair that no service trusts. */
export async function generateForeignKey(): Promise<{ sign: Sign; publicJwk: Json }> {
  const pair = (await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])) as CryptoKeyPair;
  const publicJwk = (await crypto.subtle.exportKey('jwk', pair.publicKey)) as Json;
  return { sign: signer(pair.privateKey), publicJwk };
}
