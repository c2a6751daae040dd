import { z } from 'zod';
import type { AuthorizationRequest } from '../../access/sessions/console_providers.ts';
import type { ConsoleSession, SessionGrant } from '../../access/sessions/sessions.ts';
import type { Authentication } from '../../app/authentication.ts';
import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { EXTENSION, jsonAnswer, NOT_STORED } from '../openapi/responses.ts';
import { dataBody, link } from '../openapi/schemas.ts';
import { BAD_TOKEN, bearerToken } from '../pipeline/bearer.ts';
import type { Operation } from '../pipeline/operation.ts';
import type { OperationDeps } from '../pipeline/pipeline.ts';
import { readData } from '../pipeline/reading.ts';
import { documentReply, faultReply, NO_CONTENT, type Reply } from '../server/reply.ts';
import { REALMS_OUTPUT, showRealms } from './admin/realms.ts';
import { secretAnswer, secretReply } from './oauth_form.ts';
import { type ProjectedMembers, projectionSchema, projector } from './projection.ts';

export const CONSOLE_TAG = 'console';

/** The dependencies of the sign-in operations. */
export interface SessionDeps extends OperationDeps {
  /** The sign-in methods. Links are always accepted. */
  readonly console: NonNullable<Authentication['console']>;
}

const INVALID_CODE: Reply = faultReply('invalid_sign_in_code');
const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="authrealm", error="insufficient_scope"' };
const NO_RIGHTS = faultReply('insufficient_scope', CHALLENGE, 'needs at least one scope');
const NO_SESSION = faultReply('insufficient_scope', CHALLENGE, 'needs a session of the console');

const providerName = z.string().min(1).max(32).meta({ description: 'A provider name from `/console/ways`.' });

/** The code of a link or a provider, which is exchanged for a session. */
const exchangeSchema = z
  .object({
    grant: z.enum(['link', 'provider']),
    code: z
      .string()
      .min(1)
      // The provider decides the length of a code (RFC 6749, 4.1.2).
      .max(8_192)
      .meta({
        description:
          'For a link, the text after `#code=`; for a provider, the authorization code it returned.',
      }),
    name: providerName.optional(),
    code_verifier: z
      .string()
      .regex(/^[\w.~-]{43,128}$/, 'must be 43 to 128 letters, digits or . _ ~ - (RFC 7636, 4.1)')
      .optional(),
    nonce: z
      .string()
      .regex(/^[\w-]{22,255}$/, 'must be 22 to 255 characters of base64url')
      .optional()
      .meta({ description: 'The nonce of the authorization request.' }),
    iss: z
      .string()
      .min(1)
      .max(1_024)
      .optional()
      .meta({ description: 'The `iss` parameter of the authorization response (RFC 9207).' }),
  })
  .superRefine((input, context) => {
    if (input.grant !== 'provider') return;
    for (const name of ['name', 'code_verifier', 'nonce'] as const) {
      if (input[name] === undefined)
        context.addIssue({ code: 'custom', path: [name], message: 'is missing' });
    }
  });

/** The provider to sign in through. */
const providerSignInSchema = z.object({ name: providerName });

const METHODS: ProjectedMembers<object> = {
  link: z.string().meta({ description: 'The command that prints a sign-in link.' }),
  providers: z.array(z.strictObject({ name: z.string() })).meta({ description: 'The OpenID providers.' }),
};
const RENEWED: ProjectedMembers<SessionGrant> = {
  access_token: [z.string(), ({ token }) => token],
  expires_in: z.int().meta({ description: 'Seconds until the token expires.' }),
  session_expires_in: z
    .int()
    .meta({ description: 'Seconds until the session ends, however often it is renewed.' }),
  scope: [z.string(), ({ scopes }) => [...scopes].join(' ')],
  realms: [REALMS_OUTPUT, ({ realms }) => showRealms(realms)],
  actor: z.string().meta({ description: 'The name of the user in the audit log.' }),
};
const BEGUN: ProjectedMembers<ConsoleSession> = {
  ...RENEWED,
  label: z.string().meta({ description: 'The display name in the console.' }),
};
const REQUEST: ProjectedMembers<AuthorizationRequest> = {
  authorization_endpoint: link,
  client_id: z.string(),
  issuer: link,
  scope: z.string(),
  redirect_uri: link,
};

const describeSession = projector(BEGUN);
const describeRenewal = projector(RENEWED);
const describeRequest = projector(REQUEST);

/** The answer with these members in `data`. */
const inData = <From>(members: ProjectedMembers<From>) => z.strictObject({ data: projectionSchema(members) });

const RENEWAL = {
  access_token: 'eyJhbGciOiJFZDI1NTE5In0.e30.c2lnbmF0dXJl',
  expires_in: LIMITS.consoleTokenSeconds,
  session_expires_in: 28_800,
  scope: 'users:read',
  realms: '*',
  actor: 'console:anna',
};

const PROVIDER = 'https://login.example';
const requestExample = (baseUrl: string) => ({
  authorization_endpoint: `${PROVIDER}/authorize`,
  client_id: 'authrealm-console',
  issuer: PROVIDER,
  scope: 'openid profile email',
  redirect_uri: `${baseUrl}/console`,
});

/** How each of them is documented. */
const DOCUMENTED = { tag: CONSOLE_TAG, isExtension: true } as const;

/** The same with the Origin header, which pages of the service send. */
function documentedAt(baseUrl: string) {
  const description = 'Must be the origin of the base URL. Browsers send it.';
  const example = new URL(baseUrl).origin;
  const origin = z.string().meta({ param: { ...EXTENSION, description, example } });
  return { ...DOCUMENTED, ownHeaders: { Origin: origin }, faults: ['foreign_origin'] } as const;
}

const SIGN_IN_OPERATIONS: readonly Omit<Operation<SessionDeps>, 'isOwn'>[] = [
  {
    name: 'get-console-ways',
    method: 'GET',
    path: '/console/ways',
    access: 'open',
    handle({ console }) {
      const { sessions, linkCommand } = console;
      const providers = sessions.providers.map((name) => ({ name }));
      const reply = documentReply({ data: { link: linkCommand, providers } }, 'no-store');
      return () => reply;
    },
    document: () => ({
      ...DOCUMENTED,
      summary: 'List the ways to sign in to the console.',
      isFixed: true,
      success: jsonAnswer('The sign-in methods.', NOT_STORED, inData(METHODS).meta({ id: 'ConsoleWays' }), {
        data: {
          link: 'authrealm console link --role support --base-url https://idp.example',
          providers: [{ name: 'staff' }],
        },
      }),
    }),
  },
  {
    name: 'begin-console-departure',
    method: 'POST',
    path: '/console/provider',
    access: 'open',
    body: 'json',
    handle:
      ({ console: { sessions } }) =>
      async (call) => {
        const { name } = readData(providerSignInSchema, call.body ?? '');
        const departure = await sessions.authorizationRequest(name);
        if (departure === 'unavailable') throw new Fault('provider_unavailable');
        if (!departure)
          throw new Fault('invalid', [{ field: 'data.name', rule: 'is no provider of the console' }]);
        return secretReply({ data: describeRequest(departure) });
      },
    document: ({ baseUrl }) => ({
      ...documentedAt(baseUrl),
      summary: 'Get the authorization request parameters for signing in to the console through a provider.',
      body: dataBody('console_departure.create', providerSignInSchema, { name: 'staff' }),
      success: secretAnswer(
        'The authorization endpoint, the client ID and the redirect URI.',
        inData(REQUEST).meta({
          id: 'ConsoleDeparture',
          description: 'The page generates state, nonce and the PKCE verifier.',
        }),
        { data: requestExample(baseUrl) },
      ),
      faults: ['foreign_origin', 'provider_unavailable'],
    }),
  },
  {
    name: 'begin-console-session',
    method: 'POST',
    path: '/console/token',
    access: 'credentials',
    body: 'json',
    handle:
      ({ console: { sessions }, limits: { badCredentials } }) =>
      async (call) => {
        const {
          grant,
          code,
          name = '',
          nonce = '',
          iss,
          ...input
        } = readData(exchangeSchema, call.body ?? '');
        const from = { address: call.address(), requestId: call.requestId };
        const { code_verifier: codeVerifier = '' } = input;
        const session = await (grant === 'link'
          ? sessions.signInByLink(code, from)
          : sessions.signInByProvider(name, { code, codeVerifier, nonce, iss }, from));
        if (typeof session === 'object') return secretReply({ data: describeSession(session) });
        if (session === 'unavailable') throw new Fault('provider_unavailable');
        if (session === 'rightless') {
          call.refused = 'insufficient scope';
          return NO_RIGHTS;
        }
        call.refused = 'bad credentials';
        badCredentials?.countFailure(call);
        return INVALID_CODE;
      },
    document: ({ baseUrl }) => ({
      ...documentedAt(baseUrl),
      summary: 'Sign in to the console with the code of a link or of a provider.',
      body: dataBody('console_session.create', exchangeSchema, {
        grant: 'link',
        code: 'k3Yb0Q6nqv8l1uW9sDZbXA',
      }),
      success: secretAnswer('The session.', inData(BEGUN).meta({ id: 'ConsoleSession' }), {
        data: { ...RENEWAL, label: 'anna' },
      }),
      faults: ['invalid_sign_in_code', 'insufficient_scope', 'foreign_origin', 'provider_unavailable'],
    }),
  },
  {
    name: 'renew-console-session',
    method: 'PUT',
    path: '/console/token',
    access: 'session',
    handle:
      ({ tokens, console: { sessions }, limits: { grants } }) =>
      async (call) => {
        const token = await tokens.inspect(bearerToken(call.authorization ?? '') ?? '');
        if (token?.sessionId === undefined) return NO_SESSION;
        const limited = grants?.(token.sessionId);
        if (limited) {
          call.refused = 'too many grants';
          return limited;
        }
        const session = await sessions.renew(token.sessionId);
        if (session) return secretReply({ data: describeRenewal(session) });
        call.refused = 'bad token';
        return BAD_TOKEN;
      },
    document: ({ baseUrl }) => ({
      ...documentedAt(baseUrl),
      summary:
        'Renew the token of a console session. The token of the request remains valid until it expires.',
      success: secretAnswer(
        'A new token, with the rights that the session has now.',
        inData(RENEWED).meta({ id: 'ConsoleRenewal' }),
        { data: RENEWAL },
      ),
    }),
  },
  {
    name: 'end-console-session',
    method: 'DELETE',
    path: '/console/token',
    access: 'session',
    handle:
      ({ tokens, console: { sessions } }) =>
      async (call) => {
        const token = await tokens.inspect(bearerToken(call.authorization ?? '') ?? '');
        return token &&
          (await sessions.signOut(token, { address: call.address(), requestId: call.requestId }))
          ? NO_CONTENT
          : NO_SESSION;
      },
    document: ({ baseUrl }) => ({
      ...documentedAt(baseUrl),
      summary: 'Sign out of the console. The token is rejected within a second.',
      success: { status: 204, description: 'The session has ended.', headers: NOT_STORED },
    }),
  },
];

/** Console sign-in, renewal and sign-out, for pages of the service and never for origins that CORS lists. */
export const CONSOLE_OPERATIONS: readonly Operation<SessionDeps>[] = SIGN_IN_OPERATIONS.map((operation) => ({
  ...operation,
  isOwn: true,
}));
