import { z } from 'zod';
import { publicKeySet } from '../../access/keys/signing.ts';
import { GRANT_TYPES } from '../../access/tokens/token_grant.ts';
import { LIMITS } from '../../model/limits.ts';
import { SCOPES } from '../../model/principal.ts';
import { VERSION } from '../../model/version.ts';
import { fixedHeader, HEADERS, jsonContent } from '../openapi/responses.ts';
import { link } from '../openapi/schemas.ts';
import type { CallHandler } from '../pipeline/call.ts';
import { negotiate, type Representations, representationsOf } from '../pipeline/negotiation.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import type { OperationDeps } from '../pipeline/pipeline.ts';
import { documentReply, JSON_TYPE, type Reply } from '../server/reply.ts';
import { type ProjectedMembers, projectionSchema, projector } from './projection.ts';
import { READY, readiness, type ServiceDeps, unreadyResponse } from './readiness.ts';

/** A public operation about the service itself. */
interface ServiceDescription<Deps>
  extends Pick<Operation<Deps>, 'name' | 'path' | 'isUncounted' | 'loopUse'>,
    Pick<Documentation, 'summary' | 'isFixed'> {
  /** The `Cache-Control` of its answer. */
  readonly caching: string;
  /** Its answer has an ETag and may be compressed. */
  readonly isNegotiated?: true;
  readonly schema: () => z.ZodType;
  readonly example: (baseUrl: string) => object;
  /** Answers that are neither the success nor plain faults. */
  readonly responses?: () => NonNullable<Documentation['responses']>;
  readonly answer: (deps: Deps, caching: string) => CallHandler;
}

function serviceOperation<Deps>(described: ServiceDescription<Deps>): Operation<Deps> {
  const { summary, isFixed, isNegotiated, caching, schema, example, responses, answer, ...operation } =
    described;
  return {
    ...operation,
    method: 'GET',
    access: 'open',
    handle: (deps) => answer(deps, caching),
    document: ({ baseUrl, etag }) => ({
      summary,
      tag: 'service',
      isExtension: true,
      ...(isNegotiated ? { headers: ['If-None-Match'] } : {}),
      success: {
        status: 200,
        description: summary,
        headers: {
          'Cache-Control': fixedHeader('How long the response may be cached.', caching),
          ...(isNegotiated
            ? { ETag: etag, Vary: HEADERS.vary, 'Content-Encoding': HEADERS.contentEncoding }
            : {}),
        },
        content: jsonContent(schema(), example(baseUrl)),
      },
      ...(responses ? { responses: responses() } : {}),
      ...(isFixed ? { isFixed } : {}),
    }),
  };
}

const publicKey = () =>
  z.strictObject({
    kid: z.string(),
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    alg: z.literal('Ed25519'),
    use: z.literal('sig'),
    x: z.string(),
  });

const KEY_EXAMPLE = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  kid: '019c1318-a400-7000-8000-000000000099',
  alg: 'Ed25519',
  use: 'sig',
};

const METHODS = ['client_secret_basic', 'client_secret_post'] as const;
const methodsOfClient = [z.array(z.enum(METHODS)), () => METHODS] as const;
const at = (path: string) => [link, ({ issuer }: { readonly issuer: string }) => issuer + path] as const;

const METADATA: ProjectedMembers<{ readonly issuer: string; readonly scopes: readonly string[] }> = {
  issuer: link,
  token_endpoint: at('/oauth/access_token'),
  revocation_endpoint: at('/oauth/revoke'),
  introspection_endpoint: at('/oauth/introspect'),
  jwks_uri: at('/.well-known/jwks.json'),
  scopes_supported: [z.array(z.string()), ({ scopes }) => scopes],
  response_types_supported: [z.array(z.string()), () => []],
  grant_types_supported: [z.array(z.enum(GRANT_TYPES)), () => GRANT_TYPES],
  token_endpoint_auth_methods_supported: [z.array(z.enum([...METHODS, 'none'])), () => [...METHODS, 'none']],
  revocation_endpoint_auth_methods_supported: methodsOfClient,
  introspection_endpoint_auth_methods_supported: methodsOfClient,
};
const metadataOf = projector(METADATA);

export const SERVER_METADATA = serviceOperation<OperationDeps>({
  name: 'get-server-metadata',
  path: '/.well-known/oauth-authorization-server',
  summary: 'Get the authorization server metadata (RFC 8414).',
  caching: 'no-cache',
  isFixed: true,
  schema: () => projectionSchema(METADATA),
  example: (issuer) => metadataOf({ issuer, scopes: ['oidc-profile-infos:read'] }),
  answer: ({ baseUrl: issuer }, caching) =>
    fixed(documentReply(metadataOf({ issuer, scopes: SCOPES }), caching)),
});

function fixed(reply: Reply): CallHandler {
  return () => reply;
}

/** Key set, metadata, OpenAPI document and health checks. */
export const SERVICE_OPERATIONS: readonly Operation<ServiceDeps>[] = [
  serviceOperation<ServiceDeps>({
    name: 'get-key-set',
    path: '/.well-known/jwks.json',
    summary: 'Get the public keys that verify access tokens (RFC 7517).',
    caching: `public, max-age=${LIMITS.keySetAgeMsMax / 1000}`,
    schema: () => z.strictObject({ keys: z.array(publicKey()) }),
    example: () => ({ keys: [KEY_EXAMPLE] }),
    answer({ access }, caching) {
      return async () => {
        const { keys } = await access.fresh();
        return documentReply(publicKeySet(keys.accepted.values()), caching);
      };
    },
  }),
  SERVER_METADATA,
  serviceOperation<ServiceDeps>({
    name: 'get-openapi',
    path: '/openapi.json',
    summary: 'Get this document.',
    caching: 'no-cache',
    isNegotiated: true,
    schema: () => z.looseObject({ openapi: z.string() }),
    example: () => ({ openapi: '3.1.0', info: { title: 'authrealm', version: VERSION } }),
    answer({ describe }, caching) {
      // Built when it is first requested, so that a start does not wait for it.
      let made: Promise<Representations> | undefined;
      const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': caching };
      return async (call) => {
        made ??= describe().then((document) => {
          const bytes = new TextEncoder().encode(JSON.stringify(document));
          return representationsOf(headers, bytes, Bun.gzipSync(bytes));
        });
        return negotiate(call, await made);
      };
    },
  }),
  serviceOperation({
    name: 'get-health',
    path: '/healthz',
    summary: 'Check that the process answers.',
    caching: 'no-store',
    isFixed: true,
    isUncounted: true,
    loopUse: 'own turn',
    schema: () => z.strictObject({ status: z.literal('ok') }),
    example: () => ({ status: 'ok' }),
    answer: (_, caching) => fixed(documentReply({ status: 'ok' }, caching)),
  }),
  serviceOperation<ServiceDeps>({
    name: 'get-readiness',
    path: '/readyz',
    summary: 'Check that lookups can be answered.',
    caching: 'no-store',
    isUncounted: true,
    loopUse: 'own turn',
    ...READY,
    responses: () => ({ '503': unreadyResponse() }),
    answer: readiness,
  }),
];
