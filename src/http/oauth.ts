import { type GrantToken, refusalOfType } from '../access/grant.ts';
import type { OwnToken } from '../access/token.ts';
import type { TokenDesk } from '../access/token_desk.ts';
import type { Answer } from './call.ts';
import { type FormEntrance, formEndpoint, NO_STORE } from './oauth_form.ts';
import type { Reply } from './reply.ts';

/** The token endpoint (RFC 6749, 3.2). */
export function tokenEndpoint(grant: GrantToken, entrance: FormEntrance): Answer {
  const read = {
    parameters: ['grant_type', 'scope'] as const,
    refuse: (value: (name: 'grant_type') => string | undefined) => refusalOfType(value('grant_type')),
  };
  return formEndpoint(read, entrance, async ({ call, client, value }) => {
    const from = { address: call.address(), requestId: call.requestId };
    const answer = await grant(client, value('scope'), from);
    if (answer.kind === 'refused') return answer;
    const { minted, scopes } = answer;
    return told({
      access_token: minted.token,
      token_type: 'Bearer',
      expires_in: minted.expiresIn,
      expires: minted.expires,
      identifier: value('grant_type'),
      scope: [...scopes].join(' '),
    });
  });
}

/** `token_type_hint` is read over: there is one type of token (RFC 7009, 2.1). */
const OF_TOKEN = { parameters: ['token', 'token_type_hint'] } as const;
const DONE: Reply = Object.freeze({ status: 200, headers: NO_STORE, body: '{}' });

/** Revocation (RFC 7009): what is no token of this client is answered as one that was taken back. */
export function revocationEndpoint(desk: TokenDesk, entrance: FormEntrance): Answer {
  return formEndpoint(OF_TOKEN, entrance, async ({ call, client, value }) => {
    const from = { address: call.address(), requestId: call.requestId };
    const answer = await desk.revoke(client, value('token'), from);
    return answer.kind === 'refused' ? answer : DONE;
  });
}

/** Introspection (RFC 7662): of what is no token of this client nothing is told. */
export function introspectionEndpoint(desk: TokenDesk, entrance: FormEntrance): Answer {
  return formEndpoint(OF_TOKEN, entrance, async ({ client, value }) => {
    const answer = await desk.introspect(client, value('token'));
    return answer.kind === 'refused' ? answer : told(inspected(answer.token));
  });
}

function inspected(token: OwnToken | undefined): object {
  if (!token) return { active: false };
  const { scopes, clientId, issuer, jti, issuedAt, notBefore, expires } = token;
  return {
    active: true,
    scope: [...scopes].join(' '),
    client_id: clientId,
    token_type: 'Bearer',
    ...{ exp: expires, iat: issuedAt, nbf: notBefore },
    ...{ sub: clientId, aud: issuer, iss: issuer, jti },
  };
}

function told(body: object): Reply {
  return { status: 200, headers: NO_STORE, body: JSON.stringify(body) };
}
