import { z } from 'zod';
import type { ZodOpenApiPathsObject, ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import { Fault } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';
import { faultExample } from './openapi_examples.ts';
import { oauthPaths } from './openapi_oauth.ts';
import { ALWAYS, type Faults, fixedHeader, HEADERS, OURS } from './openapi_responses.ts';
import { errorsShape, link } from './openapi_schemas.ts';
import { DEPENDENCIES, STATES } from './readiness.ts';
import { replyOf } from './reply.ts';

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

const methods = z.array(z.enum(['client_secret_basic', 'client_secret_post']));

const metadata = z.strictObject({
  issuer: link,
  token_endpoint: link,
  revocation_endpoint: link,
  introspection_endpoint: link,
  jwks_uri: link,
  scopes_supported: z.array(z.string()),
  response_types_supported: z.array(z.string()),
  grant_types_supported: z.array(z.literal('client_credentials')),
  token_endpoint_auth_methods_supported: methods,
  revocation_endpoint_auth_methods_supported: methods,
  introspection_endpoint_auth_methods_supported: methods,
});

/** What the service says about itself, and how a token is got. */
export function servicePaths(baseUrl: string, faults: Faults): ZodOpenApiPathsObject {
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
  return {
    ...oauthPaths(baseUrl, faults),
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
        content: { schema: metadata, example: metadataExample(baseUrl) },
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
          not_ready: { value: JSON.parse(replyOf(new Fault('not_ready', states)).body as string) },
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

function metadataExample(issuer: string): object {
  const methods = ['client_secret_basic', 'client_secret_post'];
  return {
    issuer,
    token_endpoint: `${issuer}/oauth/access_token`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    introspection_endpoint: `${issuer}/oauth/introspect`,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    scopes_supported: ['oidc-profile-infos:read'],
    response_types_supported: [],
    grant_types_supported: ['client_credentials'],
    token_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_methods_supported: methods,
    introspection_endpoint_auth_methods_supported: methods,
  };
}
