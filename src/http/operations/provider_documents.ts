import { z } from 'zod';
import type { Uuid } from '../../domain/id.ts';
import { type ProviderAnswer, providerDocument } from '../../domain/provider_document.ts';
import type { AnyRecord, Key, Learning, Resource } from '../../domain/resource.ts';
import { readTraceContext, type TraceContext } from '../../domain/trace_context.ts';
import { HEADERS, jsonContent } from '../openapi/responses.ts';
import { link } from '../openapi/schemas.ts';
import { authenticate } from '../pipeline/bearer.ts';
import type { Stage } from '../pipeline/call.ts';
import { selfLinks } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { locate, permit, type RecordDeps, read, shedLoad } from '../pipeline/pipeline.ts';
import { JSON_TYPE, REQUEST_ID } from '../server/reply.ts';
import { recordOperation } from './record_operation.ts';

/** What the path that asks a provider is built from. */
export interface InspectDeps extends RecordDeps {
  /** Rejects with Fault `overloaded` where too many are asked at once, in all or for one realm. */
  readonly inspect: (
    discoveryUrl: string,
    realm: Uuid,
    trace: TraceContext | undefined,
  ) => Promise<ProviderAnswer>;
}

/** What a provider says of itself now, or that it says nothing. */
const discoverySchema = () =>
  z
    .strictObject({
      data: z.strictObject({
        type: z.literal('provider_discovery'),
        discovery_url: z.string().meta({ format: 'uri' }),
        asked: z.boolean().meta({
          description:
            'False where the service runs with `--offline`, or no issuer leads to this URL: then nobody was asked.',
        }),
        answers: z.boolean().meta({
          description: 'Whether a JSON object came by 200 in time. Why none came is not told.',
        }),
        took_ms: z
          .int()
          .min(0)
          .nullable()
          .meta({ description: 'Of an answer: milliseconds until all of it was there.' }),
        issuer_agrees: z
          .boolean()
          .nullable()
          .meta({ description: 'Whether it names the issuer that the record has, letter for letter.' }),
        document: providerDocument.nullable(),
      }),
      links: z.strictObject({ self: link }),
    })
    .meta({ id: 'ProviderDiscovery' });

/** A look at a provider: as a lookup of the record (401, 403, 404), then the provider is asked (503). */
export function inspectProvider(
  resource: Resource,
  path: string,
  learning: Learning,
): Operation<InspectDeps> {
  return recordOperation(resource, {
    name: `get-${resource.name}-discovery`,
    method: 'GET',
    path,
    right: 'read',
    stages: (deps) => [
      ...shedLoad(deps.store.overloaded.get),
      authenticate(deps.tokens, deps.limits),
      permit(`${resource.scope}:read`),
      locate(resource),
      read(resource, deps.store),
      inspectStage(resource, learning, deps),
    ],
    document: ({ examples }) => ({
      summary: 'Ask the provider for its discovery document, now, and tell what it says.',
      isExtension: true,
      description:
        'Nothing of it is kept. Also where the provider says nothing the status is 200. 503 where too many providers are asked at once.',
      success: {
        status: 200,
        description: 'What it says, or that nothing came.',
        headers: { 'Cache-Control': HEADERS.noStore },
        content: jsonContent(discoverySchema(), discoveryExample(`${examples.location(resource)}/discovery`)),
      },
      faults: ['not_found'],
    }),
  });
}

function inspectStage(resource: Resource, learning: Learning, { baseUrl, inspect }: InspectDeps): Stage {
  const recordLink = selfLinks({ ...resource, selfPrefix: '/v2' }, baseUrl);
  return async ({ key, record, request, requestId }) => {
    const told = record as AnyRecord & Record<string, unknown>;
    const url = String(told[learning.url]);
    const answer = await inspect(url, (key as Key)[0], readTraceContext(request.headers));
    const data = discoveryOf(url, answer, told[learning.member]);
    const links = { self: `${recordLink(key as Key)}/discovery` };
    return {
      status: 200,
      headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', [REQUEST_ID]: requestId },
      body: JSON.stringify({ data, links }),
    };
  };
}

const ISSUER = 'https://login.example.com';

function discoveryExample(self: string): z.output<ReturnType<typeof discoverySchema>> {
  return {
    links: { self },
    data: {
      type: 'provider_discovery',
      discovery_url: `${ISSUER}/.well-known/openid-configuration`,
      asked: true,
      answers: true,
      took_ms: 84,
      issuer_agrees: true,
      document: {
        issuer: ISSUER,
        authorization_endpoint: `${ISSUER}/authorize`,
        token_endpoint: `${ISSUER}/oauth/token`,
        jwks_uri: `${ISSUER}/.well-known/jwks.json`,
        scopes_supported: ['openid', 'profile', 'email'],
        response_types_supported: ['code'],
      },
    },
  };
}

function discoveryOf(
  discovery_url: string,
  answer: ProviderAnswer,
  issuer: unknown,
): z.output<ReturnType<typeof discoverySchema>>['data'] {
  const found = answer.kind === 'document' ? answer : undefined;
  return {
    type: 'provider_discovery',
    discovery_url,
    asked: answer.kind !== 'unasked',
    answers: found !== undefined,
    took_ms: found?.tookMs ?? null,
    issuer_agrees: found ? found.document.issuer === issuer : null,
    document: found?.document ?? null,
  };
}
