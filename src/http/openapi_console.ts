import { z } from 'zod';
import type { ZodOpenApiPathsObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { LIMITS } from '../domain/limits.ts';
import { departureSchema, exchangeSchema } from './console_sessions.ts';
import { SENT } from './openapi_operations.ts';
import { ALWAYS, type Faults, fixedHeader, HEADERS, OURS } from './openapi_responses.ts';
import { identifier, link } from './openapi_schemas.ts';

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

const departure = z
  .strictObject({
    data: z.strictObject({
      authorization_endpoint: link,
      client_id: z.string(),
      issuer: link,
      scope: z.string(),
      redirect_uri: link,
    }),
  })
  .meta({ id: 'ConsoleDeparture', description: 'State, nonce and the verifier of PKCE are of the page.' });

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
const TROUBLE = 'provider_unavailable';
const NO_STORE = { ...ALWAYS, 'Cache-Control': HEADERS.noStore };

const WAYS = { data: { link: true, providers: [{ name: 'staff' }], client_credentials: false } };

function departureExample(baseUrl: string): object {
  const issuer = 'https://login.example';
  return {
    data: {
      authorization_endpoint: `${issuer}/authorize`,
      client_id: 'authrealm-console',
      issuer,
      scope: 'openid profile email',
      redirect_uri: `${baseUrl}/console`,
    },
  };
}

/** The header that the page of the service sends along. */
function fromOwnPage(baseUrl: string) {
  const description = 'Browsers send it: the origin of the base URL, and no other.';
  const example = new URL(baseUrl).origin;
  return { header: z.object({ Origin: z.string().meta({ param: { ...OURS, description, example } }) }) };
}

/** An answer in JSON that nobody keeps. */
function told(description: string, schema: z.ZodType, example: object): ZodOpenApiResponseObject {
  const headers = z.object({ ...NO_STORE, Pragma: fixedHeader('For old caches.', 'no-cache') });
  return { description, headers, content: { 'application/json': { schema, example } } };
}

function sent(name: string, schema: z.ZodType, example: object) {
  const body = { schema: z.object({ data: schema }).meta({ id: name }), example: { data: example } };
  return { required: true, content: { 'application/json': body } };
}

/** How somebody signs in to the console, and out of it. */
export function consolePaths(baseUrl: string, faults: Faults): ZodOpenApiPathsObject {
  const common = { ...OURS, tags: [CONSOLE_TAG], security: [] };
  const asked = { ...common, requestParams: fromOwnPage(baseUrl) };
  return {
    '/console/ways': {
      get: {
        ...common,
        operationId: 'get-console-ways',
        summary: 'By what one can sign in to the console.',
        responses: {
          '200': { ...told('The ways.', ways, WAYS), headers: z.object(NO_STORE) },
          ...faults('rate_limited', 'overloaded', 'unavailable'),
        },
      },
    },
    '/console/provider': {
      post: {
        ...asked,
        operationId: 'begin-console-departure',
        summary: 'What a page needs to send somebody to a provider, to sign in to the console by it.',
        requestBody: sent('console_departure.create', departureSchema, { name: 'staff' }),
        responses: {
          '200': told(
            'Where to go, as whom, and where to come back to.',
            departure,
            departureExample(baseUrl),
          ),
          ...faults(...SENT, 'origin_foreign', ...OPEN, TROUBLE),
        },
      },
    },
    '/console/token': {
      post: {
        ...asked,
        operationId: 'begin-console-session',
        summary: 'Sign in to the console by the code of a link, or of a provider.',
        requestBody: sent('console_session.create', exchangeSchema, {
          grant: 'link',
          code: 'k3Yb0Q6nqv8l1uW9sDZbXA',
        }),
        responses: {
          '200': told('The session.', session, SESSION),
          ...faults(...SENT, 'code_refused', 'insufficient_scope', 'origin_foreign', ...OPEN, TROUBLE),
        },
      },
      delete: {
        ...asked,
        operationId: 'end-console-session',
        summary: 'Sign out of the console. The token is refused within a second.',
        security: [{ session: [] }],
        responses: {
          '204': { description: 'It is over.', headers: z.object(NO_STORE) },
          ...faults('unauthenticated', 'insufficient_scope', 'origin_foreign', ...OPEN),
        },
      },
    },
  };
}
