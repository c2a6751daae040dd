import type { Operation } from '../../support/openapi_client.ts';
import type { Draw } from './draw.ts';

/** Makes a client that holds these scopes, in all realms unless some are named. */
export type Credentials = (
  scope: string,
  realms?: readonly string[],
) => Promise<{ readonly clientId: string; readonly secret: string }>;

/** Tokens of more and less than an operation asks for. */
export interface Rights {
  /** Of every scope that the document knows, for these realms or all. */
  ofAll(): Promise<string>;
  /** Something to send as the `Authorization` of an operation that is not the right one. */
  wrong(operation: Operation, draw: Draw, mark: string): Promise<string | undefined>;
  /** Asks for every token anew: keys and clients may have been changed by what was sent. */
  renew(): void;
}

const NOWHERE = '00000000-0000-7000-8000-000000000000';

export function openRights(url: string, credentials: Credentials, operations: readonly Operation[]): Rights {
  const all = [...new Set(operations.flatMap(({ scopes = [] }) => scopes))];
  // Administration is of all realms.
  const ofRealms = all.filter((scope) => scope !== 'admin');
  const tokens = new Map<string, Promise<string>>();

  async function grant(scope: string, realms?: readonly string[]): Promise<string> {
    const { clientId, secret } = await credentials(scope, realms);
    return grantedBy(url, clientId, secret);
  }

  function token(scopes: readonly string[], realms?: readonly string[]): Promise<string> {
    const known = `${scopes.join(' ')} ${realms?.join(' ')}`;
    const found = tokens.get(known) ?? grant(scopes.join(' '), realms);
    tokens.set(known, found);
    return found;
  }

  return {
    ofAll: () => token(all),
    renew: () => tokens.clear(),
    async wrong({ scopes = [] }, draw, mark) {
      const others = all.filter((scope) => !scopes.includes(scope));
      const right = await token(all);
      const at = draw.below(right.length);
      return draw.one<() => string | undefined | Promise<string>>([
        () => undefined,
        async () => `Bearer ${await token(others.length > 0 ? others : all)}`,
        async () => `Bearer ${await token(ofRealms, [NOWHERE])}`,
        () => `bearer   ${right}`,
        () => `${draw.one(['Basic', 'Token', 'Bearer\t', ''])} ${right}`,
        () => `Bearer ${retold(right, draw, mark)}`,
        () => `Bearer ${mark.repeat(draw.one([1, 40, 600]))}`,
        () => `Bearer ${right.slice(0, at)}${draw.one(['A', '.', '=', ' '])}${right.slice(at + 1)}`,
        () => `Bearer ${right.slice(0, at)}`,
      ])();
    },
  };
}

/** The token of a client. */
export async function grantedBy(url: string, clientId: string, secret: string): Promise<string> {
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

/** A token that says other things than were signed. */
function retold(right: string, draw: Draw, mark: string): string {
  const [head = '', claims = '', signature = ''] = right.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as object;
  const heads = [
    { ...read(head), alg: 'none' },
    { ...read(head), alg: 'HS256' },
    { ...read(head), kid: `../../${mark}` },
    { ...read(head), kid: `' or 1=1 -- ${mark}` },
    { ...read(head), jwk: { kty: 'OKP', crv: 'Ed25519', x: mark } },
    { ...read(head), crit: ['exp'] },
  ];
  const told = { ...read(claims), scope: 'admin', sub: mark, exp: 99_999_999_999 };
  return draw.happens(0.5)
    ? `${encoded(draw.one(heads))}.${claims}.${draw.one([signature, ''])}`
    : `${head}.${encoded(told)}.${signature}`;
}
