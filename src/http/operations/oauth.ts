import { z } from 'zod';
import type { IssuedToken } from '../../access/tokens/token.ts';
import { checkGrantType, GRANT_TYPES, type GrantToken } from '../../access/tokens/token_grant.ts';
import { GRANT_FAULTS } from '../../model/fault.ts';
import { ALWAYS, header, jsonContent } from '../openapi/responses.ts';
import { errorsShape, lazyComponent, link } from '../openapi/schemas.ts';
import type { CallHandler } from '../pipeline/call.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import {
  type FormRules,
  formEndpoint,
  type OAuthDeps,
  refusalBody,
  SECRET_HEADERS,
  secretAnswer,
  secretReply,
} from './oauth_form.ts';
import { type ProjectedMembers, projectionSchema, projector } from './projection.ts';

/** The token endpoint (RFC 6749, 3.2). */
function tokenEndpoint(deps: OAuthDeps): CallHandler {
  const read: FormRules<'grant_type' | 'scope'> = {
    parameters: ['grant_type', 'scope'],
    refuse: (value) => checkGrantType(value('grant_type')),
    isImplicit: (value) => value('grant_type') === 'implicit',
  };
  return formEndpoint(read, deps, async (call, client, value) => {
    // By the ID alone only the rate of each address counts: others could spend one of the whole client.
    const limited = client.implicit ? undefined : deps.limits.grants?.(client.clientId);
    if (limited) {
      call.refused = 'too many grants';
      return limited;
    }
    const from = { address: call.address(), requestId: call.requestId };
    const answer = await deps.grant(client, value('scope'), from);
    if (answer.kind === 'refused') {
      call.refused = 'insufficient scope';
      return answer;
    }
    return secretReply(describeGrant({ ...answer, identifier: value('grant_type') }));
  });
}

/** `token_type_hint` is ignored: there is one type of token (RFC 7009, 2.1). */
const OF_TOKEN: FormRules<'token' | 'token_type_hint'> = { parameters: ['token', 'token_type_hint'] };
const DONE = secretReply({});

/** An operation whose caller sends client credentials in a form. */
function formOperation({ document, ...operation }: FormDescription): Operation<OAuthDeps> {
  return {
    ...operation,
    method: 'POST',
    access: 'credentials',
    body: 'form',
    loopUse: 'own turn',
    document: ({ baseUrl }) => ({ ...document(baseUrl), tag: 'service', responses: refusals() }),
  };
}

interface FormDescription extends Pick<Operation<OAuthDeps>, 'name' | 'path' | 'handle'> {
  readonly document: (baseUrl: string) => Pick<Documentation, 'summary' | 'isExtension' | 'body' | 'success'>;
}

const refused = lazyComponent(() =>
  z
    .strictObject({
      error: z.enum(Object.keys(GRANT_FAULTS) as [keyof typeof GRANT_FAULTS]),
      error_description: z.string(),
      ...errorsShape,
    })
    .meta({
      id: 'TokenRefusal',
      description:
        'An OAuth 2.0 error (RFC 6749, 5.2), with the `errors` member that every error response has.',
    }),
);

function refusals(): NonNullable<Documentation['responses']> {
  const challenge = header(
    'The authentication scheme for client credentials (RFC 6749, 5.2).',
    'Basic realm="authrealm"',
  );
  return {
    '400': {
      description: 'The token request is invalid.',
      headers: z.object({ ...ALWAYS, ...SECRET_HEADERS }),
      content: jsonContent(refused(), refusalBody('invalid_scope', 'the client does not hold that scope')),
    },
    '401': {
      description: 'The client credentials are invalid.',
      headers: z.object({ ...ALWAYS, ...SECRET_HEADERS, 'WWW-Authenticate': challenge }),
      content: jsonContent(refused(), refusalBody('invalid_client', 'client or secret not right')),
    },
  };
}

const seconds = () => z.int().meta({ description: 'Seconds since the epoch.' });
const credentials = () => ({ client_id: z.string().optional(), client_secret: z.string().optional() });
const CLIENT = { client_id: '019c1318-a400-7000-8000-000000000098', client_secret: 'ars_3mZk9Q' };

type Granted = Extract<Awaited<ReturnType<GrantToken>>, { readonly kind: 'granted' }>;
const GRANTED: ProjectedMembers<Granted & { readonly identifier: string | undefined }> = {
  access_token: [z.string(), ({ minted }) => minted.token],
  token_type: 'Bearer',
  expires_in: [z.int().meta({ description: 'In seconds.' }), ({ minted }) => minted.expiresIn],
  expires: [seconds(), ({ minted }) => minted.expires],
  identifier: z.enum(GRANT_TYPES),
  scope: [z.string(), ({ scopes }) => [...scopes].join(' ')],
};
const describeGrant = projector(GRANTED);
/** One component for both operations. */
const granted = lazyComponent(() => projectionSchema(GRANTED).meta({ id: 'Token' }));

const TOKEN = {
  access_token: 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl',
  token_type: 'Bearer',
  expires_in: 3600,
  expires: 1769853600,
  identifier: 'client_credentials',
  scope: 'oidc-profile-infos:read',
};

const GRANT = {
  handle: tokenEndpoint,
  document: () => ({
    summary:
      'Get an access token with client credentials, sent in the body or by HTTP Basic; or with `implicit` and the ID of a client alone.',
    body: {
      schema: z.object({
        grant_type: z.enum(GRANT_TYPES),
        ...credentials(),
        scope: z.string().optional().meta({
          description: 'The requested scopes, space-separated; by default all that the grant gives.',
        }),
      }),
      example: { grant_type: 'client_credentials', ...CLIENT, scope: 'oidc-profile-infos:read' },
    },
    success: secretAnswer('The token.', granted(), TOKEN),
  }),
};

const tokenForm = () => ({
  schema: z.object({
    token: z.string(),
    token_type_hint: z.string().optional().meta({ description: 'Ignored: there is only one type of token.' }),
    ...credentials(),
  }),
  example: { token: TOKEN.access_token, ...CLIENT },
});

const CLAIMS: ProjectedMembers<IssuedToken> = {
  active: [
    z.boolean().meta({
      description:
        'Whether the token is valid and belongs to this client. If false, there are no other members.',
    }),
    () => true,
  ],
  scope: [
    z.string().optional().meta({ description: 'The current scopes of the token.' }),
    ({ scopes }) => [...scopes].join(' '),
  ],
  client_id: z.string().optional(),
  token_type: [z.literal('Bearer').optional(), () => 'Bearer'],
  exp: [seconds().optional(), ({ expires }) => expires],
  iat: [seconds().optional(), ({ issuedAt }) => issuedAt],
  nbf: [seconds().optional(), ({ notBefore }) => notBefore],
  sub: [z.string().optional(), ({ clientId }) => clientId],
  aud: [link.optional(), ({ issuer }) => issuer],
  iss: [link.optional(), ({ issuer }) => issuer],
  jti: z.string().optional(),
};
const claimsOf = projector(CLAIMS);

/** How a client gets a token, revokes it and inspects it. */
export const OAUTH_OPERATIONS: readonly Operation<OAuthDeps>[] = [
  formOperation({ name: 'get-access-token', path: '/oauth/access_token', ...GRANT }),
  formOperation({
    name: 'get-token',
    path: '/oauth/token',
    ...GRANT,
    document: () => ({ ...GRANT.document(), isExtension: true }),
  }),
  formOperation({
    name: 'revoke-token',
    path: '/oauth/revoke',
    // A text that is no token of this client is answered like a token that is already revoked.
    handle: (deps) =>
      formEndpoint(OF_TOKEN, deps, async (call, client, value) => {
        const from = { address: call.address(), requestId: call.requestId };
        const answer = await deps.desk.revoke(client.clientId, value('token'), from);
        return answer.kind === 'refused' ? answer : DONE;
      }),
    document: () => ({
      summary: 'Revoke an access token of this client (RFC 7009). It is rejected within a second.',
      isExtension: true,
      body: tokenForm(),
      success: secretAnswer(
        'The token is revoked or was not valid. Tokens of other clients are not affected.',
        z.strictObject({}),
        {},
      ),
    }),
  }),
  formOperation({
    name: 'introspect-token',
    path: '/oauth/introspect',
    // A text that is no token of this client is answered as inactive, without its claims.
    handle: (deps) =>
      formEndpoint(OF_TOKEN, deps, async (_, client, value) => {
        const answer = await deps.desk.introspect(client.clientId, value('token'));
        if (answer.kind === 'refused') return answer;
        return secretReply(answer.token ? claimsOf(answer.token) : { active: false });
      }),
    document: (issuer) => ({
      summary: 'Introspect an access token of this client (RFC 7662).',
      isExtension: true,
      body: tokenForm(),
      success: secretAnswer(
        'The claims of the token. Invalid tokens and tokens of other clients are not active.',
        projectionSchema(CLAIMS).meta({ id: 'TokenInspection' }),
        claimsOf({
          scopes: new Set([TOKEN.scope]),
          clientId: CLIENT.client_id,
          expires: TOKEN.expires,
          issuedAt: TOKEN.expires - TOKEN.expires_in,
          notBefore: TOKEN.expires - TOKEN.expires_in,
          issuer,
          jti: '019c1318-a400-7000-8000-000000000097',
        }),
      ),
    }),
  }),
];
