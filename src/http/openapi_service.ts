import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiPathsObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { Fault, GRANT_FAULTS } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { faultExample } from './openapi_examples.ts';
import { ALWAYS, type Faults, fixedHeader, HEADERS, header, OURS } from './openapi_responses.ts';
import { errorsShape, link } from './openapi_schemas.ts';
import { DEPENDENCIES, STATES } from './readiness.ts';
import { replyOf } from './reply.ts';

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

const asked = z.object({
  grant_type: z.literal('client_credentials'),
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  scope: z.string().optional().meta({ description: 'Fewer scopes than the client holds.' }),
});

const key = z.strictObject({
  kid: z.string(),
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  alg: z.literal('Ed25519'),
  use: z.literal('sig'),
  x: z.string(),
});

/** What is said of each dependency. */
function dependencies(state: z.ZodType) {
  return z.strictObject(Object.fromEntries(DEPENDENCIES.map((name) => [name, state])));
}

const metadata = z.strictObject({
  issuer: link,
  token_endpoint: link,
  jwks_uri: link,
  scopes_supported: z.array(z.string()),
  response_types_supported: z.array(z.string()),
  grant_types_supported: z.array(z.literal('client_credentials')),
  token_endpoint_auth_methods_supported: z.array(z.enum(['client_secret_basic', 'client_secret_post'])),
});

/** What the service says about itself, and how a token is got. */
export function servicePaths(baseUrl: string, faults: Faults): ZodOpenApiPathsObject {
  const grant = grantOperation(faults);
  const isWell = { status: z.literal('ok') };
  const status = { schema: z.strictObject(isWell), example: { status: 'ok' } };
  const open = (operationId: string, summary: string, answer: Answer) => ({
    get: {
      ...OURS,
      operationId,
      summary,
      tags: ['service'],
      security: [],
      responses: {
        '200': {
          description: summary,
          headers: z.object({
            ...ALWAYS,
            'Cache-Control': fixedHeader('How long it may be kept.', answer.caching),
          }),
          content: { 'application/json': answer.content },
        },
        ...faults(
          ...(answer.isUncounted ? [] : (['rate_limited', 'overloaded'] as const)),
          ...(answer.isFixed ? [] : (['internal'] as const)),
          'unavailable',
        ),
      },
    },
  });
  const tokenUrl = `${baseUrl}/oauth/access_token`;
  const keysUrl = `${baseUrl}/.well-known/jwks.json`;
  return {
    '/oauth/access_token': { post: { ...grant, operationId: 'get-access-token' } },
    '/oauth/token': { post: { ...OURS, ...grant, operationId: 'get-token' } },
    '/.well-known/jwks.json': open('get-key-set', 'The public keys of access tokens (RFC 7517).', {
      caching: `public, max-age=${LIMITS.keySetAgeMsMax / 1000}`,
      content: { schema: z.strictObject({ keys: z.array(key) }), example: { keys: [KEY] } },
    }),
    '/.well-known/oauth-authorization-server': open(
      'get-server-metadata',
      'Metadata of the token endpoint (RFC 8414).',
      {
        caching: 'no-cache',
        isFixed: true,
        content: { schema: metadata, example: metadataExample(baseUrl, tokenUrl, keysUrl) },
      },
    ),
    '/openapi.json': open('get-openapi', 'This document.', {
      caching: 'no-cache',
      content: {
        schema: z.looseObject({ openapi: z.string() }),
        example: { openapi: '3.1.0', info: { title: 'authrealm', version: '0.1.0' } },
      },
    }),
    '/healthz': open('get-health', 'The process answers.', {
      caching: 'no-store',
      isFixed: true,
      isUncounted: true,
      content: status,
    }),
    '/readyz': readinessOperation(
      open('get-readiness', 'A lookup would be answered now.', {
        caching: 'no-store',
        isUncounted: true,
        content: {
          schema: z.strictObject({ ...isWell, dependencies: dependencies(z.literal('ok')) }),
          example: { status: 'ok', dependencies: { database: 'ok', access_table: 'ok' } },
        },
      }),
    ),
  };
}

/** The operation of readiness: what it answers where it is not says what is in trouble, if there was time to find out. */
function readinessOperation(operation: { readonly get: { readonly responses: ZodOpenApiResponsesObject } }) {
  const { responses } = operation.get;
  const states = DEPENDENCIES.map((field, place) => ({ field, rule: place === 0 ? 'ok' : 'in trouble' }));
  const unready: ZodOpenApiResponseObject = {
    ...OURS,
    description: 'A lookup would not be answered now: which dependency is in trouble.',
    headers: z.object({
      ...ALWAYS,
      'Cache-Control': HEADERS.noStore,
      'Retry-After': HEADERS.retryAfter,
    }),
    content: {
      'application/json': {
        schema: z
          .strictObject({ ...errorsShape, dependencies: dependencies(z.enum(STATES)).optional() })
          .meta({ id: 'Unready' }),
        examples: {
          not_ready: { value: JSON.parse(replyOf(new Fault('not_ready', states)).body ?? '') },
          unavailable: { value: faultExample('unavailable') },
        },
      },
    },
  };
  return { get: { ...operation.get, responses: { ...responses, '503': unready } } };
}

interface Answer {
  readonly caching: string;
  readonly content: { readonly schema: z.ZodType; readonly example: unknown };
  /** It was made when the service started: nothing can go wrong with it. */
  readonly isFixed?: boolean;
  /** It is answered whoever asks, and however much. */
  readonly isUncounted?: boolean;
}

const KEY = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  kid: '019c1318-a400-7000-8000-000000000099',
  alg: 'Ed25519',
  use: 'sig',
};

function metadataExample(issuer: string, tokenUrl: string, keysUrl: string): object {
  return {
    issuer,
    token_endpoint: tokenUrl,
    jwks_uri: keysUrl,
    scopes_supported: ['oidc-profile-infos:read'],
    response_types_supported: [],
    grant_types_supported: ['client_credentials'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  };
}

const TOKEN = {
  access_token: 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl',
  token_type: 'Bearer',
  expires_in: 3600,
  expires: 1769853600,
  identifier: 'client_credentials',
  scope: 'oidc-profile-infos:read',
};

function refusalExample(error: keyof typeof GRANT_FAULTS, title: string, detail: string): object {
  const status = String(GRANT_FAULTS[error]);
  return { error, error_description: detail, errors: [{ status, title, detail }] };
}

function grantOperation(faults: Faults): Omit<ZodOpenApiOperationObject, 'operationId'> {
  const kept = { 'Cache-Control': HEADERS.noStore, Pragma: fixedHeader('For old caches.', 'no-cache') };
  const form = {
    grant_type: 'client_credentials',
    client_id: '019c1318-a400-7000-8000-000000000098',
    client_secret: 'ars_3mZk9Q',
    scope: 'oidc-profile-infos:read',
  };
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
    summary: 'Get an access token for client credentials, in the body or by HTTP Basic.',
    tags: ['service'],
    security: [],
    requestBody: {
      required: true,
      content: { 'application/x-www-form-urlencoded': { schema: asked, example: form } },
    },
    responses: {
      '200': answer('The token.', { schema: granted, example: TOKEN }),
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
