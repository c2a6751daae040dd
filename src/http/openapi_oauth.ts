import { z } from 'zod';
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { GRANT_FAULTS } from '../domain/fault.ts';
import { ALWAYS, type Faults, fixedHeader, HEADERS, header, OURS } from './openapi_responses.ts';
import { errorsShape, link } from './openapi_schemas.ts';

const granted = z
  .strictObject({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int().meta({ description: 'Seconds.' }),
    expires: z.int().meta({ description: 'Seconds since the epoch.' }),
    identifier: z.literal('client_credentials'),
    scope: z.string(),
  })
  .meta({ id: 'Token' });

const refused = z
  .strictObject({
    error: z.enum(Object.keys(GRANT_FAULTS) as [keyof typeof GRANT_FAULTS]),
    error_description: z.string(),
    ...errorsShape,
  })
  .meta({
    id: 'TokenRefusal',
    description: 'RFC 6749, 5.2, and beside it the errors of every other answer.',
  });

const credentials = { client_id: z.string().optional(), client_secret: z.string().optional() };

const asked = z.object({
  grant_type: z.literal('client_credentials'),
  ...credentials,
  scope: z.string().optional().meta({ description: 'Fewer scopes than the client holds.' }),
});

const askedOf = z.object({
  token: z.string(),
  token_type_hint: z.string().optional().meta({ description: 'Not read: there is one type of token.' }),
  ...credentials,
});

const seconds = z.int().meta({ description: 'Seconds since the epoch.' });

const inspected = z
  .strictObject({
    active: z
      .boolean()
      .meta({ description: 'Accepted, and of this client. Nothing else stands beside false.' }),
    scope: z.string().optional().meta({ description: 'What it may do now.' }),
    client_id: z.string().optional(),
    token_type: z.literal('Bearer').optional(),
    exp: seconds.optional(),
    iat: seconds.optional(),
    nbf: seconds.optional(),
    sub: z.string().optional(),
    aud: link.optional(),
    iss: link.optional(),
    jti: z.string().optional(),
  })
  .meta({ id: 'TokenInspection' });

/** How a token is got, given back and looked at. */
export function oauthPaths(baseUrl: string, faults: Faults): ZodOpenApiPathsObject {
  const grant = formOperation(faults, {
    summary: 'Get an access token for client credentials, in the body or by HTTP Basic.',
    body: {
      schema: asked,
      example: { grant_type: 'client_credentials', ...CLIENT, scope: 'oidc-profile-infos:read' },
    },
    success: { description: 'The token.', schema: granted, example: TOKEN },
  });
  const ofToken = { schema: askedOf, example: { token: TOKEN.access_token, ...CLIENT } };
  const revoke = formOperation(faults, {
    summary: 'Take back an access token of this client (RFC 7009). It is refused within a second.',
    body: ofToken,
    success: {
      description: 'It is none, or none any more; of tokens of others nothing happens.',
      schema: z.strictObject({}),
      example: {},
    },
  });
  const introspect = formOperation(faults, {
    summary: 'Ask what an access token of this client is worth now (RFC 7662).',
    body: ofToken,
    success: {
      description: 'What it says; of tokens of others, and of those not accepted, that they are not active.',
      schema: inspected,
      example: inspectedExample(baseUrl),
    },
  });
  return {
    '/oauth/access_token': { post: { ...grant, operationId: 'get-access-token' } },
    '/oauth/token': { post: { ...OURS, ...grant, operationId: 'get-token' } },
    '/oauth/revoke': { post: { ...OURS, ...revoke, operationId: 'revoke-token' } },
    '/oauth/introspect': { post: { ...OURS, ...introspect, operationId: 'introspect-token' } },
  };
}

const CLIENT = { client_id: '019c1318-a400-7000-8000-000000000098', client_secret: 'ars_3mZk9Q' };

const TOKEN = {
  access_token: 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl',
  token_type: 'Bearer',
  expires_in: 3600,
  expires: 1769853600,
  identifier: 'client_credentials',
  scope: 'oidc-profile-infos:read',
};

function inspectedExample(issuer: string): object {
  const { client_id: client } = CLIENT;
  return {
    active: true,
    scope: TOKEN.scope,
    client_id: client,
    token_type: 'Bearer',
    ...{ exp: TOKEN.expires, iat: TOKEN.expires - 3600, nbf: TOKEN.expires - 3600 },
    ...{ sub: client, aud: issuer, iss: issuer, jti: '019c1318-a400-7000-8000-000000000097' },
  };
}

function refusalExample(error: keyof typeof GRANT_FAULTS, title: string, detail: string): object {
  const status = String(GRANT_FAULTS[error]);
  return { error, error_description: detail, errors: [{ status, title, detail }] };
}

interface FormOperation {
  readonly summary: string;
  readonly body: { readonly schema: z.ZodType; readonly example: unknown };
  readonly success: { readonly description: string; readonly schema: z.ZodType; readonly example: unknown };
}

function formOperation(
  faults: Faults,
  { summary, body, success }: FormOperation,
): Omit<ZodOpenApiOperationObject, 'operationId'> {
  const kept = { 'Cache-Control': HEADERS.noStore, Pragma: fixedHeader('For old caches.', 'no-cache') };
  const answer = (
    description: string,
    content: { schema: z.ZodType; example: unknown },
    more = {},
  ): ZodOpenApiResponseObject => ({
    description,
    headers: z.object({ ...ALWAYS, ...kept, ...more }),
    content: { 'application/json': content },
  });
  return {
    summary,
    tags: ['service'],
    security: [],
    requestBody: {
      required: true,
      content: { 'application/x-www-form-urlencoded': body },
    },
    responses: {
      '200': answer(success.description, { schema: success.schema, example: success.example }),
      '400': answer('The request is not right.', {
        schema: refused,
        example: refusalExample('invalid_scope', 'Bad Request', 'the client does not hold that scope'),
      }),
      '401': answer(
        'The credentials are not right.',
        {
          schema: refused,
          example: refusalExample('invalid_client', 'Unauthorized', 'client or secret not right'),
        },
        { 'WWW-Authenticate': header('How to send them (RFC 6749, 5.2).', 'Basic realm="authrealm"') },
      ),
      ...faults('request_timeout', 'body_too_large', 'rate_limited', 'internal', 'overloaded', 'unavailable'),
    },
  };
}
