import { z } from 'zod';
import type { Uuid } from '../../domain/id.ts';
import { type ProviderAnswer, providerDocument } from '../../domain/provider_document.ts';
import type { AnyRecord, DiscoveredMember, Key, Resource } from '../../domain/resource.ts';
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

/** The dependencies of the operation that fetches the document of a provider. */
export interface InspectDeps extends RecordDeps {
  /** Rejects with Fault `overloaded` if there are too many requests to providers, in total or for one realm. */
  readonly inspect: (
    discoveryUrl: string,
    realm: Uuid,
    trace: TraceContext | undefined,
  ) => Promise<ProviderAnswer>;
}

/** The discovery document of a provider, or that it did not answer. */
const discoverySchema = () =>
  z
    .strictObject({
      data: z.strictObject({
        type: z.literal('provider_discovery'),
        discovery_url: z.string().meta({ format: 'uri' }),
        asked: z.boolean().meta({
          description:
            'False if no request was sent: the service runs with `--offline`, or the URL belongs to no issuer.',
        }),
        answers: z.boolean().meta({
          description:
            'Whether the provider answered 200 with a JSON object in time. The reason for a failure is not given.',
        }),
        took_ms: z
          .int()
          .min(0)
          .nullable()
          .meta({ description: 'Milliseconds until the whole answer was received; null without an answer.' }),
        issuer_agrees: z
          .boolean()
          .nullable()
          .meta({ description: 'Whether its issuer equals the issuer of the record exactly.' }),
        document: providerDocument.nullable(),
      }),
      links: z.strictObject({ self: link }),
    })
    .meta({ id: 'ProviderDiscovery' });

/** A lookup of the record (401, 403, 404), then a request to its provider (503). */
export function inspectProvider(
  resource: Resource,
  path: string,
  learning: DiscoveredMember,
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
      summary: 'Fetch the discovery document of the provider now.',
      isExtension: true,
      description:
        'Nothing is stored. The status is 200 even if the provider does not answer, and 503 if there are too many requests to providers.',
      success: {
        status: 200,
        description: 'The discovery document, or that there was no answer.',
        headers: { 'Cache-Control': HEADERS.noStore },
        content: jsonContent(discoverySchema(), discoveryExample(`${examples.location(resource)}/discovery`)),
      },
      faults: ['not_found'],
    }),
  });
}

function inspectStage(
  resource: Resource,
  learning: DiscoveredMember,
  { baseUrl, inspect }: InspectDeps,
): Stage {
  const recordLink = selfLinks({ ...resource, selfPrefix: '/v2' }, baseUrl);
  return async ({ key, record, request, requestId }) => {
    const stored = record as AnyRecord & Record<string, unknown>;
    const url = String(stored[learning.url]);
    const answer = await inspect(url, (key as Key)[0], readTraceContext(request.headers));
    const data = discoveryOf(url, answer, stored[learning.member]);
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
    asked: answer.kind !== 'not_requested',
    answers: found !== undefined,
    took_ms: found?.tookMs ?? null,
    issuer_agrees: found ? found.document.issuer === issuer : null,
    document: found?.document ?? null,
  };
}
