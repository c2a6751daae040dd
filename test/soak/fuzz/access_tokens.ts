import type { Operation } from '../../support/openapi_client.ts';
import type { Draw } from './draw.ts';

/** Creates a client with these scopes, by default for all realms. */
export type Credentials = (
  scope: string,
  realms?: readonly string[],
) => Promise<{ readonly clientId: string; readonly secret: string }>;

/** Tokens with more and with less than the scopes of an operation. */
export interface AccessTokens {
  /** A token with every scope of the document, for all realms. */
  valid(): Promise<string>;
  /** An `Authorization` value that the operation must reject, or undefined for none. */
  wrong(operation: Operation, draw: Draw, mark: string): Promise<string | undefined>;
  /** Drops all tokens: fuzz requests may have changed keys and clients. */
  renew(): void;
}

const UNKNOWN_REALM = '00000000-0000-7000-8000-000000000000';

export function openAccessTokens(
  url: string,
  credentials: Credentials,
  operations: readonly Operation[],
): AccessTokens {
  const all = [...new Set(operations.flatMap(({ scopes = [] }) => scopes))];
  // The scope admin covers all realms and cannot be restricted.
  const realmScopes = all.filter((scope) => scope !== 'admin');
  const tokens = new Map<string, Promise<string>>();

  async function grant(scope: string, realms?: readonly string[]): Promise<string> {
    const { clientId, secret } = await credentials(scope, realms);
    return requestToken(url, clientId, secret);
  }

  function token(scopes: readonly string[], realms?: readonly string[]): Promise<string> {
    const key = `${scopes.join(' ')} ${realms?.join(' ')}`;
    const grantedToken = tokens.get(key) ?? grant(scopes.join(' '), realms);
    tokens.set(key, grantedToken);
    return grantedToken;
  }

  return {
    valid: () => token(all),
    renew: () => tokens.clear(),
    async wrong({ scopes = [] }, draw, mark) {
      const others = all.filter((scope) => !scopes.includes(scope));
      const right = await token(all);
      const at = draw.below(right.length);
      return draw.one<() => string | undefined | Promise<string>>([
        () => undefined,
        async () => `Bearer ${await token(others.length > 0 ? others : all)}`,
        async () => `Bearer ${await token(realmScopes, [UNKNOWN_REALM])}`,
        () => `bearer   ${right}`,
        () => `${draw.one(['Basic', 'Token', 'Bearer\t', ''])} ${right}`,
        () => `Bearer ${forgedToken(right, draw, mark)}`,
        () => `Bearer ${mark.repeat(draw.one([1, 40, 600]))}`,
        () => `Bearer ${right.slice(0, at)}${draw.one(['A', '.', '=', ' '])}${right.slice(at + 1)}`,
        () => `Bearer ${right.slice(0, at)}`,
      ])();
    },
  };
}

export async function requestToken(url: string, clientId: string, secret: string): Promise<string> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: secret,
  });
  const answer = await fetch(`${url}/oauth/access_token`, { method: 'POST', body });
  if (answer.status !== 200) throw new Error(`no token: ${await answer.text()}`);
  return ((await answer.json()) as { access_token: string }).access_token;
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token whose header or claims were changed after signing. */
function forgedToken(right: string, draw: Draw, mark: string): string {
  const [head = '', claims = '', signature = ''] = right.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as object;
  const forgedHeaders = [
    { ...read(head), alg: 'none' },
    { ...read(head), alg: 'HS256' },
    { ...read(head), kid: `../../${mark}` },
    { ...read(head), kid: `' or 1=1 -- ${mark}` },
    { ...read(head), jwk: { kty: 'OKP', crv: 'Ed25519', x: mark } },
    { ...read(head), crit: ['exp'] },
  ];
  const forgedClaims = { ...read(claims), scope: 'admin', sub: mark, exp: 99_999_999_999 };
  return draw.happens(0.5)
    ? `${encoded(draw.one(forgedHeaders))}.${claims}.${draw.one([signature, ''])}`
    : `${head}.${encoded(forgedClaims)}.${signature}`;
}
