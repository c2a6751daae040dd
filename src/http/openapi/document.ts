import { createDocument } from 'zod-openapi';
import { SCOPES } from '../../domain/principal.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { ADMIN_TAG } from '../operations/admin/operation.ts';
import { OPERATIONS } from '../operations/api.ts';
import { CONSOLE_OPERATIONS, CONSOLE_TAG } from '../operations/console_sessions.ts';
import type { DocumentContext } from '../pipeline/operation.ts';
import { openExamples } from './examples.ts';
import { pathsOf } from './paths.ts';
import { header, openFaults, unmatchedResponses } from './responses.ts';
import { itemSchema, narrow, recordSchema, requestSchema } from './schemas.ts';

const DESCRIPTION = `A self-hosted directory of identity links, wire-compatible with version 2 of the authentication realms \
API. What carries \`x-authrealm-extension\` is an addition of ours. Every GET answers HEAD as well, without a body. A path \
that is not listed answers 404 (\`unknown_route\` among the responses below), another method 405 (\`method_not_allowed\`). In \
the body of a request members that are not listed are ignored.`;

/**
 * The document of the running service, from the descriptions that requests are validated, stored and answered with.
 * Every operation stands there with every status it can answer, every header and an example of each body.
 */
export function openApiDocument(baseUrl: string, version: string, hasConsole = true): object {
  const examples = openExamples(baseUrl);
  const context: DocumentContext = {
    baseUrl,
    examples,
    faults: openFaults(),
    etag: header('Strong (RFC 9110, 8.8.3); moves with every write of the record.', examples.etag, 'etag'),
    records: new Map(RESOURCES.map((resource) => [resource, recordSchema(resource)])),
    items: new Map(RESOURCES.map((resource) => [resource, itemSchema(resource, false)])),
    foundItems: new Map(RESOURCES.map((resource) => [resource, itemSchema(resource, true)])),
    updates: new Map(RESOURCES.map((resource) => [resource, requestSchema(resource, 'update')])),
  };
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'authrealm',
        version,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: baseUrl }],
      security: [{ client_credentials: [] }],
      tags: [
        ...RESOURCES.map(({ name, summary }) => ({ name, description: summary })),
        { name: 'changes', description: 'The change feed.' },
        { name: 'service', description: 'The service itself.' },
        { name: CONSOLE_TAG, description: 'How somebody signs in to the console, and out of it.' },
        { name: ADMIN_TAG, description: 'Who may do what, with which keys, and what was done.' },
      ],
      components: {
        securitySchemes: {
          session: { type: 'http', scheme: 'bearer', description: 'A session of the console.' },
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
        responses: unmatchedResponses(),
      },
      paths: pathsOf(hasConsole ? [...OPERATIONS, ...CONSOLE_OPERATIONS] : OPERATIONS, context),
    },
    { override: narrow },
  );
}
