import { z } from 'zod';
import { createDocument, type ZodOpenApiPathsObject, type ZodOpenApiResponseObject } from 'zod-openapi';
import { FAULTS, type FaultCode, GRANT_FAULTS } from '../domain/fault.ts';
import { SCOPES } from '../domain/principal.ts';
import { lineage, membersOf, type Resource } from '../domain/resource.ts';
import { itemPattern, paramNames } from './links.ts';

const identifier = z.string().meta({ format: 'uuid' });
const moment = z.iso.datetime({ precision: 3 }).meta({ example: '2026-01-31T09:00:00.000Z' });
const link = z.string().meta({ format: 'uri' });

const errors = z
  .object({
    errors: z.array(z.object({ status: z.string(), title: z.string(), detail: z.string().optional() })),
  })
  .meta({ id: 'Errors', description: 'What went wrong; never a value of the request.' });

const requestId = {
  'X-Request-Id': z.string().meta({ description: "The caller's own, if it sent one, else minted." }),
};
const validators = {
  ETag: z.string().meta({ description: 'Strong; moves with every write of the record.' }),
  'Cache-Control': z.literal('private, no-cache'),
};

/** The document of the running service, from the descriptions it validates, stores and answers with. */
export function openApiDocument(baseUrl: string, version: string, lookups: readonly Resource[]): object {
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'authrealm',
      version,
      description:
        'A self-hosted directory of identity links, wire-compatible with version 2 of the authentication realms ' +
        'API. Operations marked x-authrealm-extension are additions of ours.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    security: [{ client_credentials: [] }],
    components: {
      securitySchemes: {
        client_credentials: {
          type: 'oauth2',
          flows: {
            clientCredentials: {
              tokenUrl: `${baseUrl}/oauth/access_token`,
              scopes: Object.fromEntries(SCOPES.map((scope) => [scope, scope])),
            },
          },
        },
      },
    },
    paths: { ...Object.assign({}, ...lookups.map(lookupPaths)), ...ownPaths() },
  });
}

function lookupPaths(resource: Resource): ZodOpenApiPathsObject {
  const pattern = itemPattern(resource).replace(/:(\w+)/g, '{$1}');
  const operation = {
    operationId: `get-${resource.name}`,
    summary: `Get one record by ID. ${resource.summary}`,
    security: [{ client_credentials: [`${resource.scope}:read`] }],
    requestParams: {
      path: z.object(
        Object.fromEntries(paramNames(resource).map((name, depth) => [name, param(resource, depth)])),
      ),
      header: z.object({
        'If-None-Match': z.string().optional(),
        'X-Request-Id': z.string().max(64).optional(),
      }),
    },
    responses: {
      '200': {
        description: 'The record.',
        headers: z.object({ ...requestId, ...validators }),
        content: { 'application/json': { schema: recordSchema(resource) } },
      },
      '304': {
        description: 'The record still carries an ETag of If-None-Match.',
        headers: z.object({ ...requestId, ...validators }),
      },
      ...faults('unauthenticated', 'insufficient_scope', 'not_found', 'unavailable'),
    },
  };
  const versioned = { [`/v2${pattern}`]: { get: operation } };
  if (resource.selfPrefix === '/v2') return versioned;
  // The self link of a single record leads here.
  const unversioned = { ...operation, operationId: `${operation.operationId}-by-self-link` };
  return { ...versioned, [`${resource.selfPrefix}${pattern}`]: { get: unversioned } };
}

function param(resource: Resource, depth: number): z.ZodType {
  const owner = lineage(resource)[depth];
  return z.string().meta({ description: `ID of the ${owner?.name}, in any letter case.`, format: 'uuid' });
}

/** A single record as it is answered: the members of the description, secrets left out. */
export function recordSchema(resource: Resource): z.ZodType {
  const visible = membersOf(resource).filter(({ placement }) => !placement.secret);
  const at = (within: 'meta' | 'relationships' | undefined) =>
    Object.fromEntries(
      visible.filter(({ placement }) => placement.within === within).map((m) => [m.name, m.schema]),
    );
  const relationships = at('relationships');
  const data = z.strictObject({
    id: identifier,
    type: z.literal(resource.type),
    ...at(undefined),
    ...(Object.keys(relationships).length > 0 ? { relationships: z.strictObject(relationships) } : {}),
    meta: z.strictObject({ ...at('meta'), created_at: moment, updated_at: moment }),
  });
  return z
    .strictObject({ data, links: z.strictObject({ self: link }) })
    .meta({ id: resource.type, description: resource.summary });
}

function faults(...codes: FaultCode[]): Record<string, ZodOpenApiResponseObject> {
  return Object.fromEntries(
    codes.map((code) => [
      String(FAULTS[code].status),
      {
        description: `${FAULTS[code].title}: ${FAULTS[code].detail}`,
        headers: z.object(requestId),
        content: { 'application/json': { schema: errors } },
      },
    ]),
  );
}

/** What the family does not have (contract 8, row 48). */
const OURS = { 'x-authrealm-extension': true } as const;

const granted = z.strictObject({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().meta({ description: 'Seconds.' }),
  expires: z.int().meta({ description: 'Seconds since the epoch.' }),
  identifier: z.literal('client_credentials'),
  scope: z.string(),
});

const refused = errors.extend({
  error: z.enum(Object.keys(GRANT_FAULTS) as [keyof typeof GRANT_FAULTS]),
  error_description: z.string(),
});

const asked = z.object({
  grant_type: z.literal('client_credentials'),
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  scope: z.string().optional().meta({ description: 'Fewer scopes than the client holds.' }),
});

function ownPaths(): ZodOpenApiPathsObject {
  const grant = (operationId: string) => ({
    post: {
      operationId,
      summary: 'Get an access token for client credentials, in the body or by HTTP Basic.',
      security: [],
      requestBody: { content: { 'application/x-www-form-urlencoded': { schema: asked } } },
      responses: {
        '200': answer('The token.', granted),
        '400': answer('The request is not right.', refused),
        '401': answer('The credentials are not right.', refused),
        ...faults('request_timeout', 'body_too_large', 'unavailable'),
      },
    },
  });
  const open = (operationId: string, summary: string, schema: z.ZodType) => ({
    get: {
      ...OURS,
      operationId,
      summary,
      security: [],
      responses: { '200': answer(summary, schema), ...faults('unavailable') },
    },
  });
  const status = z.strictObject({ status: z.literal('ok') });
  return {
    '/oauth/access_token': grant('get-access-token'),
    '/oauth/token': { post: { ...OURS, ...grant('get-token').post } },
    '/.well-known/jwks.json': open(
      'get-key-set',
      'The public keys of access tokens (RFC 7517).',
      z.object({ keys: z.array(z.looseObject({ kid: z.string() })) }),
    ),
    '/.well-known/oauth-authorization-server': open(
      'get-server-metadata',
      'Metadata of the token endpoint (RFC 8414).',
      z.looseObject({ issuer: link, token_endpoint: link, jwks_uri: link }),
    ),
    '/openapi.json': open('get-openapi', 'This document.', z.looseObject({ openapi: z.string() })),
    '/healthz': open('get-health', 'The process answers.', status),
    '/readyz': open('get-readiness', 'A lookup would be answered now.', status),
  };
}

function answer(description: string, schema: z.ZodType): ZodOpenApiResponseObject {
  return { description, headers: z.object(requestId), content: { 'application/json': { schema } } };
}
