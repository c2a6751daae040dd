import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { LIMITS } from '../domain/limits.ts';
import { exchangeSchema } from './console_sessions.ts';
import { SENT } from './openapi_operations.ts';
import { ALWAYS, type Faults, fixedHeader, HEADERS, OURS } from './openapi_responses.ts';
import { identifier } from './openapi_schemas.ts';

export const CONSOLE_TAG = 'console';

const ways = z
  .strictObject({
    data: z.strictObject({
      link: z.literal(true).meta({ description: 'By a link of `authrealm console link`.' }),
      providers: z
        .array(z.strictObject({ name: z.string() }))
        .meta({ description: 'By these OpenID providers.' }),
      client_credentials: z.boolean().meta({ description: 'By the credentials of a client.' }),
    }),
  })
  .meta({ id: 'ConsoleWays' });

const session = z
  .strictObject({
    data: z.strictObject({
      access_token: z.string(),
      expires_in: z.int().meta({ description: 'Seconds.' }),
      scope: z.string(),
      realms: z.union([z.literal('*'), z.array(identifier)]),
      actor: z.string().meta({ description: 'What the log calls whoever signed in.' }),
      label: z.string().meta({ description: 'What they are called in the console.' }),
    }),
  })
  .meta({ id: 'ConsoleSession' });

const SESSION = {
  data: {
    access_token: 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl',
    expires_in: LIMITS.consoleTokenSeconds,
    scope: 'users:read',
    realms: '*',
    actor: 'console:anna',
    label: 'anna',
  },
};

const OPEN = ['rate_limited', 'internal', 'overloaded', 'unavailable'] as const;
const NO_STORE = { ...ALWAYS, 'Cache-Control': HEADERS.noStore };

/** How somebody signs in to the console, and out of it. */
export function consolePaths(baseUrl: string, faults: Faults): ZodOpenApiPathsObject {
  const { origin } = new URL(baseUrl);
  const fromOwnPage = {
    header: z.object({
      Origin: z.string().meta({
        param: {
          ...OURS,
          description: 'Browsers send it: the origin of the base URL, and no other.',
          example: origin,
        },
      }),
    }),
  };
  return {
    '/console/ways': {
      get: {
        ...OURS,
        operationId: 'get-console-ways',
        summary: 'By what one can sign in to the console.',
        tags: [CONSOLE_TAG],
        security: [],
        responses: {
          '200': {
            description: 'The ways.',
            headers: z.object(NO_STORE),
            content: {
              'application/json': {
                schema: ways,
                example: { data: { link: true, providers: [{ name: 'staff' }], client_credentials: false } },
              },
            },
          },
          ...faults('rate_limited', 'overloaded', 'unavailable'),
        },
      },
    },
    '/console/token': {
      post: {
        ...OURS,
        operationId: 'begin-console-session',
        summary: 'Sign in to the console by a one-time code.',
        tags: [CONSOLE_TAG],
        security: [],
        requestParams: fromOwnPage,
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: z.object({ data: exchangeSchema }).meta({ id: 'console_session.create' }),
              example: { data: { grant: 'link', code: 'k3Yb0Q6nqv8l1uW9sDZbXA' } },
            },
          },
        },
        responses: {
          '200': {
            description: 'The session.',
            headers: z.object({ ...NO_STORE, Pragma: fixedHeader('For old caches.', 'no-cache') }),
            content: { 'application/json': { schema: session, example: SESSION } },
          },
          ...faults(...SENT, 'code_refused', 'origin_foreign', ...OPEN),
        },
      },
      delete: {
        ...OURS,
        operationId: 'end-console-session',
        summary: 'Sign out of the console. The token is refused within a second.',
        tags: [CONSOLE_TAG],
        security: [{ session: [] }],
        requestParams: fromOwnPage,
        responses: {
          '204': { description: 'It is over.', headers: z.object(NO_STORE) },
          ...faults('unauthenticated', 'insufficient_scope', 'origin_foreign', ...OPEN),
        },
      },
    },
  };
}
