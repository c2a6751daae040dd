import { z } from 'zod';
import type { ConsoleSessions, SessionGrant } from '../../auth/sessions/sessions.ts';
import { Fault } from '../../domain/fault.ts';
import { EXTENSION, fixedHeader, HEADERS, jsonContent } from '../openapi/responses.ts';
import { BAD_TOKEN, bearerToken } from '../pipeline/bearer.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import type { Operation } from '../pipeline/operation.ts';
import type { OperationDeps } from '../pipeline/pipeline.ts';
import { readData } from '../pipeline/reading.ts';
import { documentReply, faultReply, type Reply } from '../server/reply.ts';
import {
  exchangeSchema,
  METHODS_EXAMPLE,
  methodsSchema,
  providerSignInAnswer,
  providerSignInExample,
  providerSignInSchema,
  RENEWAL,
  renewalSchema,
  SESSION,
  sessionSchema,
} from './console_schemas.ts';
import { NO_STORE } from './oauth_form.ts';

export const CONSOLE_TAG = 'console';

/** The sign-in methods. Links are always accepted. */
export interface ConsoleSignIn {
  readonly sessions: ConsoleSessions;
  readonly linkCommand: string;
}

/** The dependencies of the sign-in operations. */
export interface SessionDeps extends OperationDeps {
  readonly console: ConsoleSignIn;
}

const INVALID_CODE: Reply = faultReply('invalid_sign_in_code');
const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="authrealm", error="insufficient_scope"' };
const NO_RIGHTS = faultReply('insufficient_scope', CHALLENGE, 'needs at least one scope');
const NO_SESSION = faultReply('insufficient_scope', CHALLENGE, 'needs a session of the console');
const SIGNED_OUT: Reply = Object.freeze({
  status: 204,
  headers: Object.freeze({ 'Cache-Control': 'no-store' }),
  body: null,
});

const listSignInMethods: Operation<SessionDeps> = {
  name: 'get-console-ways',
  method: 'GET',
  path: '/console/ways',
  access: 'open',
  isOwn: true,
  handle: signInMethods,
  document: () => ({
    summary: 'List the ways to sign in to the console.',
    tag: CONSOLE_TAG,
    isExtension: true,
    isFixed: true,
    success: {
      status: 200,
      description: 'The sign-in methods.',
      headers: { 'Cache-Control': HEADERS.noStore },
      content: jsonContent(methodsSchema(), METHODS_EXAMPLE),
    },
  }),
};

const beginProviderSignIn: Operation<SessionDeps> = {
  name: 'begin-console-departure',
  method: 'POST',
  path: '/console/provider',
  access: 'open',
  isOwn: true,
  body: 'json',
  handle: beginSignIn,
  document: ({ baseUrl }) => ({
    summary: 'Get the authorization request parameters for signing in to the console through a provider.',
    tag: CONSOLE_TAG,
    isExtension: true,
    ownHeaders: originHeader(baseUrl),
    body: bodyOf('console_departure.create', providerSignInSchema, { name: 'staff' }),
    success: {
      status: 200,
      description: 'The authorization endpoint, the client ID and the redirect URI.',
      headers: CACHING,
      content: jsonContent(providerSignInAnswer(), providerSignInExample(baseUrl)),
    },
    faults: ['foreign_origin', 'provider_unavailable'],
  }),
};

const beginSession: Operation<SessionDeps> = {
  name: 'begin-console-session',
  method: 'POST',
  path: '/console/token',
  access: 'credentials',
  isOwn: true,
  body: 'json',
  handle: exchange,
  document: ({ baseUrl }) => ({
    summary: 'Sign in to the console with the code of a link or of a provider.',
    tag: CONSOLE_TAG,
    isExtension: true,
    ownHeaders: originHeader(baseUrl),
    body: bodyOf('console_session.create', exchangeSchema, { grant: 'link', code: 'k3Yb0Q6nqv8l1uW9sDZbXA' }),
    success: {
      status: 200,
      description: 'The session.',
      headers: CACHING,
      content: jsonContent(sessionSchema(), SESSION),
    },
    faults: ['invalid_sign_in_code', 'insufficient_scope', 'foreign_origin', 'provider_unavailable'],
  }),
};

const renewSession: Operation<SessionDeps> = {
  name: 'renew-console-session',
  method: 'PUT',
  path: '/console/token',
  access: 'session',
  isOwn: true,
  handle: renew,
  document: ({ baseUrl }) => ({
    summary: 'Renew the token of a console session. The token of the request remains valid until it expires.',
    tag: CONSOLE_TAG,
    isExtension: true,
    ownHeaders: originHeader(baseUrl),
    success: {
      status: 200,
      description: 'A new token, with the rights that the session has now.',
      headers: CACHING,
      content: jsonContent(renewalSchema(), RENEWAL),
    },
    faults: ['foreign_origin'],
  }),
};

const endSession: Operation<SessionDeps> = {
  name: 'end-console-session',
  method: 'DELETE',
  path: '/console/token',
  access: 'session',
  isOwn: true,
  handle: end,
  document: ({ baseUrl }) => ({
    summary: 'Sign out of the console. The token is rejected within a second.',
    tag: CONSOLE_TAG,
    isExtension: true,
    ownHeaders: originHeader(baseUrl),
    success: {
      status: 204,
      description: 'The session has ended.',
      headers: { 'Cache-Control': HEADERS.noStore },
    },
    faults: ['foreign_origin'],
  }),
};

/** Console sign-in, renewal and sign-out. Only pages of the service may call them, never origins that CORS lists. */
export const CONSOLE_OPERATIONS: readonly Operation<SessionDeps>[] = [
  listSignInMethods,
  beginProviderSignIn,
  beginSession,
  renewSession,
  endSession,
];

function signInMethods({ console }: SessionDeps): CallHandler {
  const { sessions, linkCommand } = console;
  const providers = sessions.providers.map((name) => ({ name }));
  const reply = documentReply({ data: { link: linkCommand, providers } }, 'no-store');
  return () => reply;
}

function beginSignIn({ console: { sessions } }: SessionDeps): CallHandler {
  return async (call) => {
    const { name } = readData(providerSignInSchema, call.body ?? '');
    const departure = await sessions.authorizationRequest(name);
    if (departure === 'unavailable') throw new Fault('provider_unavailable');
    if (!departure)
      throw new Fault('invalid', [{ field: 'data.name', rule: 'is no provider of the console' }]);
    const { authorizationEndpoint, clientId, issuer, scope, redirectUri } = departure;
    const data = {
      authorization_endpoint: authorizationEndpoint,
      client_id: clientId,
      issuer,
      scope,
      redirect_uri: redirectUri,
    };
    return { status: 200, headers: NO_STORE, body: JSON.stringify({ data }) };
  };
}

function exchange({ console: { sessions }, limits: { badCredentials } }: SessionDeps): CallHandler {
  return async (call) => {
    const session = await exchangeCode(sessions, readData(exchangeSchema, call.body ?? ''), call);
    if (typeof session === 'object') return sessionReply(session);
    if (session === 'unavailable') throw new Fault('provider_unavailable');
    if (session === 'rightless') {
      call.refused = 'insufficient scope';
      return NO_RIGHTS;
    }
    call.refused = 'bad credentials';
    badCredentials?.countFailure(call);
    return INVALID_CODE;
  };
}

function exchangeCode(sessions: ConsoleSessions, input: z.output<typeof exchangeSchema>, call: Call) {
  const { code, name = '', code_verifier: codeVerifier = '', nonce = '', iss } = input;
  const from = { address: call.address(), requestId: call.requestId };
  if (input.grant === 'link') return sessions.signInByLink(code, from);
  return sessions.signInByProvider(name, { code, codeVerifier, nonce, iss }, from);
}

function renew({ tokens, console: { sessions }, limits: { grants } }: SessionDeps): CallHandler {
  return async (call) => {
    const token = await tokens.inspect(bearerToken(call.authorization ?? '') ?? '');
    if (token?.sessionId === undefined) return NO_SESSION;
    const limited = grants?.(token.sessionId);
    if (limited) {
      call.refused = 'too many grants';
      return limited;
    }
    const session = await sessions.renew(token.sessionId);
    if (session) return sessionReply(session);
    call.refused = 'bad token';
    return BAD_TOKEN;
  };
}

function end({ tokens, console: { sessions } }: SessionDeps): CallHandler {
  return async (call) => {
    const token = await tokens.inspect(bearerToken(call.authorization ?? '') ?? '');
    return token && (await sessions.signOut(token, { address: call.address(), requestId: call.requestId }))
      ? SIGNED_OUT
      : NO_SESSION;
  };
}

function sessionReply({
  token,
  scopes,
  realms,
  ...session
}: SessionGrant & { readonly label?: string }): Reply {
  const data = {
    access_token: token,
    expires_in: session.expiresIn,
    session_expires_in: session.sessionExpiresIn,
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    actor: session.actor,
    label: session.label,
  };
  return { status: 200, headers: NO_STORE, body: JSON.stringify({ data }) };
}

const CACHING = { 'Cache-Control': HEADERS.noStore, Pragma: fixedHeader('For HTTP/1.0 caches.', 'no-cache') };

/** The Origin header that pages of the service send. */
function originHeader(baseUrl: string): z.ZodRawShape {
  const description = 'Must be the origin of the base URL. Browsers send it.';
  const example = new URL(baseUrl).origin;
  return { Origin: z.string().meta({ param: { ...EXTENSION, description, example } }) };
}

function bodyOf(id: string, schema: z.ZodType, example: object) {
  return { schema: z.object({ data: schema }).meta({ id }), example: { data: example } };
}
