import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { learningOf } from '../domain/resource.ts';
import { RESOURCES } from '../domain/resources.ts';
import { discoveryPattern, paramNames } from './links.ts';
import { ASKED } from './openapi_operations.ts';
import { headersNamed, pathParameters } from './openapi_parameters.ts';
import { ALWAYS, HEADERS, OURS } from './openapi_responses.ts';
import type { DocumentContext } from './operation.ts';
import { discoverySchema } from './provider_documents.ts';
import { JSON_TYPE } from './reply.ts';

const ISSUER = 'https://login.example.com';

const EXAMPLE = (self: string) => ({
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
});

/** What providers say of themselves, in the document. */
export function discoveryPaths({ faults, examples }: DocumentContext): ZodOpenApiPathsObject {
  const paths = RESOURCES.filter(learningOf).map((resource) => {
    const get = {
      ...OURS,
      operationId: `get-${resource.name}-discovery`,
      summary: 'Ask the provider for its discovery document, now, and tell what it says.',
      description:
        'Nothing of it is kept. Also where the provider says nothing the status is 200. 503 where too many providers are asked at once.',
      tags: [resource.name],
      security: [{ client_credentials: [`${resource.scope}:read`] }],
      requestParams: {
        path: pathParameters(resource, paramNames(resource)),
        header: headersNamed(['X-Request-Id']),
      },
      responses: {
        '200': {
          description: 'What it says, or that nothing came.',
          headers: z.object({ ...ALWAYS, 'Cache-Control': HEADERS.noStore }),
          content: {
            [JSON_TYPE]: {
              schema: discoverySchema,
              example: EXAMPLE(`${examples.location(resource)}/discovery`),
            },
          },
        },
        ...faults(...ASKED, 'not_found'),
      },
    };
    return [discoveryPattern(resource)?.replace(/:(\w+)/g, '{$1}'), { get }] as const;
  });
  return Object.fromEntries(paths);
}
