import { createDocument } from 'zod-openapi';
import { ACCOUNT_MEMBERS_TAG } from '../../compat/account_members.ts';
import { SETTINGS_TAG } from '../../compat/settings.ts';
import { openExamples } from '../../http/openapi/examples.ts';
import { pathsOf } from '../../http/openapi/paths.ts';
import { header, openFaults, unmatchedResponses } from '../../http/openapi/responses.ts';
import { narrow, openRecordSchemas } from '../../http/openapi/schemas.ts';
import { ADMIN_TAG } from '../../http/operations/admin/operation.ts';
import { CONSOLE_OPERATIONS, CONSOLE_TAG } from '../../http/operations/console_sessions.ts';
import type { DocumentContext } from '../../http/pipeline/operation.ts';
import { SCOPES } from '../../model/principal.ts';
import { RESOURCES } from '../../model/resources.ts';
import { OPERATIONS } from './operations.ts';

const DESCRIPTION = `A self-hosted directory of identity links, wire-compatible with version 2 of the authentication realms \
API. Additions to that API are marked \`x-authrealm-extension\`. Every GET also answers HEAD, without a body. Other paths \
answer 404 (response \`unknown_route\`), other methods 405 (\`method_not_allowed\`). Unknown members of a request body \
are ignored.`;

/**
 * The OpenAPI document of the running service, made from the same descriptions as validation, storage and responses. It
 * lists every operation with each status it can answer, each header and an example of each body.
 */
export function openApiDocument(baseUrl: string, version: string, hasConsole = true): object {
  const examples = openExamples(baseUrl);
  const context: DocumentContext = {
    baseUrl,
    examples,
    faults: openFaults(),
    etag: header('A strong ETag (RFC 9110, 8.8.3), which changes with the content.', examples.etag, 'etag'),
    schemas: openRecordSchemas(),
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
        ...RESOURCES.map(({ name, words: [, many], summary }) => group(name, many, summary)),
        group(SETTINGS_TAG, 'settings', 'Which realm is for whom, and the installation as a store.'),
        group(
          ACCOUNT_MEMBERS_TAG,
          'sign-in to an account',
          'Account tokens, and the users of the account realm.',
        ),
        group('changes', 'changes', 'The change feed.'),
        group('service', 'tokens and health', 'Tokens, keys, metadata and health checks.'),
        group(CONSOLE_TAG, 'console', 'Console sign-in and sign-out.'),
        group(ADMIN_TAG, 'administration', 'Clients, signing keys, webhooks, the audit log and erasures.'),
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

/** A tag with the title that people read: generators of clients make names of modules from `name`. */
function group(name: string, title: string, description: string) {
  return { name, 'x-displayName': `${title.charAt(0).toUpperCase()}${title.slice(1)}`, description };
}
