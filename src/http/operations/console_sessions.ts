import { z } from 'zod';
import type { ConsoleSessions } from '../../auth/sessions/sessions.ts';
import { Fault } from '../../domain/fault.ts';
import { EXTENSION, HEADERS, jsonContent } from '../openapi/responses.ts';
import { dataBody } from '../openapi/schemas.ts';
import { BAD_TOKEN, bearerToken } from '../pipeline/bearer.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import type { Documentation, Operation } from '../pipeline/operation.ts';
import type { OperationDeps } from '../pipeline/pipeline.ts';
import { readData } from '../pipeline/reading.ts';
import { documentReply, faultReply, type Reply } from '../server/reply.ts';
import {
  describeRenewal,
  describeRequest,
  describeSession,
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
import { SECRET_HEADERS, secretReply } from './oauth_form.ts';

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

/** An operation for pages of the service, never for origins that CORS lists. */
function consoleOperation({ document, ...operation }: ConsoleDescription): Operation<SessionDeps> {
  const isRead = operation.method === 'GET';
  return {
    ...operation,
    isOwn: true,
    document: ({ baseUrl }) => ({
      tag: CONSOLE_TAG,
      isExtension: true,
      ...(isRead ? {} : { ownHeaders: originHeader(baseUrl) }),
      ...document(baseUrl),
    }),
  };
}

interface ConsoleDescription extends Omit<Operation<SessionDeps>, 'isOwn' | 'document'> {
  readonly document: (
    baseUrl: string,
  ) => Pick<Documentation, 'summary' | 'isFixed' | 'body' | 'success' | 'faults'>;
}

/** Console sign-in, renewal and sign-out. */
export const CONSOLE_OPERATIONS: readonly Operation<SessionDeps>[] = [
  consoleOperation({
    name: 'get-console-ways',
    method: 'GET',
    path: '/console/ways',
    access: 'open',
    handle: signInMethods,
    document: () => ({
      summary: 'List the ways to sign in to the console.',
      isFixed: true,
      success: {
        status: 200,
        description: 'The sign-in methods.',
        headers: { 'Cache-Control': HEADERS.noStore },
        content: jsonContent(methodsSchema(), METHODS_EXAMPLE),
      },
    }),
  }),
  consoleOperation({
    name: 'begin-console-departure',
    method: 'POST',
    path: '/console/provider',
    access: 'open',
    body: 'json',
    handle: beginSignIn,
    document: (baseUrl) => ({
      summary: 'Get the authorization request parameters for signing in to the console through a provider.',
      body: dataBody('console_departure.create', providerSignInSchema, { name: 'staff' }),
      success: {
        status: 200,
        description: 'The authorization endpoint, the client ID and the redirect URI.',
        headers: SECRET_HEADERS,
        content: jsonContent(providerSignInAnswer(), providerSignInExample(baseUrl)),
      },
      faults: ['foreign_origin', 'provider_unavailable'],
    }),
  }),
  consoleOperation({
    name: 'begin-console-session',
    method: 'POST',
    path: '/console/token',
    access: 'credentials',
    body: 'json',
    handle: exchange,
    document: () => ({
      summary: 'Sign in to the console with the code of a link or of a provider.',
      body: dataBody('console_session.create', exchangeSchema, {
        grant: 'link',
        code: 'k3Yb0Q6nqv8l1uW9sDZbXA',
      }),
      success: {
        status: 200,
        description: 'The session.',
        headers: SECRET_HEADERS,
        content: jsonContent(sessionSchema(), SESSION),
      },
      faults: ['invalid_sign_in_code', 'insufficient_scope', 'foreign_origin', 'provider_unavailable'],
    }),
  }),
  consoleOperation({
    name: 'renew-console-session',
    method: 'PUT',
    path: '/console/token',
    access: 'session',
    handle: renew,
    document: () => ({
      summary:
        'Renew the token of a console session. The token of the request remains valid until it expires.',
      success: {
        status: 200,
        description: 'A new token, with the rights that the session has now.',
        headers: SECRET_HEADERS,
        content: jsonContent(renewalSchema(), RENEWAL),
      },
      faults: ['foreign_origin'],
    }),
  }),
  consoleOperation({
    name: 'end-console-session',
    method: 'DELETE',
    path: '/console/token',
    access: 'session',
    handle: end,
    document: () => ({
      summary: 'Sign out of the console. The token is rejected within a second.',
      success: {
        status: 204,
        description: 'The session has ended.',
        headers: { 'Cache-Control': HEADERS.noStore },
      },
      faults: ['foreign_origin'],
    }),
  }),
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
    return secretReply({ data: describeRequest(departure) });
  };
}

function exchange({ console: { sessions }, limits: { badCredentials } }: SessionDeps): CallHandler {
  return async (call) => {
    const session = await exchangeCode(sessions, readData(exchangeSchema, call.body ?? ''), call);
    if (typeof session === 'object') return secretReply({ data: describeSession(session) });
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
    if (session) return secretReply({ data: describeRenewal(session) });
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

/** The Origin header that pages of the service send. */
function originHeader(baseUrl: string): z.ZodRawShape {
  const description = 'Must be the origin of the base URL. Browsers send it.';
  const example = new URL(baseUrl).origin;
  return { Origin: z.string().meta({ param: { ...EXTENSION, description, example } }) };
}
