import { z } from 'zod';
import type { Session, Sessions } from '../access/sessions.ts';
import type { Tokens } from '../access/token.ts';
import { Fault } from '../domain/fault.ts';
import { readData } from './admin/reading.ts';
import { authenticate, bearerToken } from './bearer.ts';
import { readBody } from './body.ts';
import { type Answer, type Call, type Stage, walk } from './call.ts';
import { NO_STORE } from './oauth_form.ts';
import { noteAddress } from './operations.ts';
import { fromOwnPage } from './own_origin.ts';
import type { RateLimits } from './rate_limits.ts';
import { documentReply, faultReply, type Reply } from './reply.ts';
import type { Route } from './router.ts';

/** By what one can sign in, beside the links that there always are. */
export interface ConsoleDesk {
  readonly sessions: Sessions;
  /** The page takes those of a client. */
  readonly clientCredentials: boolean;
}

export interface ConsoleRooms {
  readonly tokens: Tokens;
  readonly limits: RateLimits;
  readonly baseUrl: string;
  /** Undefined where there is no console. */
  readonly console: ConsoleDesk | undefined;
}

const providerName = z
  .string()
  .min(1, 'must not be empty')
  .max(32, 'must have at most 32 characters')
  .meta({ description: 'One of those that `/console/ways` names.' });

/** What is exchanged for a session. */
export const exchangeSchema = z
  .object({
    grant: z.enum(['link', 'provider']),
    code: z
      .string()
      .min(1)
      // How long one is, a provider alone decides (RFC 6749, 4.1.2).
      .max(8_192)
      .meta({ description: 'Of a link what stands behind `#code=`; of a provider what it sent along.' }),
    name: providerName.optional(),
    code_verifier: z
      .string()
      .regex(/^[\w.~-]{43,128}$/, 'must be 43 to 128 letters, digits or . _ ~ - (RFC 7636, 4.1)')
      .optional(),
    nonce: z
      .string()
      .regex(/^[\w-]{22,255}$/, 'must be 22 to 255 characters of base64url')
      .optional()
      .meta({ description: 'That of the request to the provider.' }),
    iss: z
      .string()
      .min(1, 'must not be empty')
      .max(1_024, 'must have at most 1024 characters')
      .optional()
      .meta({ description: 'As the provider sent it along (RFC 9207).' }),
  })
  .superRefine((said, context) => {
    if (said.grant !== 'provider') return;
    for (const name of ['name', 'code_verifier', 'nonce'] as const) {
      if (said[name] === undefined) context.addIssue({ code: 'custom', path: [name], message: 'is missing' });
    }
  });

/** Which provider somebody is to be sent to. */
export const departureSchema = z.object({ name: providerName });

const CODE_REFUSED: Reply = faultReply('code_refused');
/** Of a client that has no session to end, and of a person who may do nothing here. */
const NO_RIGHT = faultReply('insufficient_scope', {
  'WWW-Authenticate': 'Bearer realm="authrealm", error="insufficient_scope"',
});
const SIGNED_OUT: Reply = Object.freeze({
  status: 204,
  headers: Object.freeze({ 'Cache-Control': 'no-store' }),
  body: null,
});

/** How somebody signs in to the console and out of it. No other origin asks, whichever are listed for CORS. */
export function sessionRoutes({ console: of, tokens, limits, baseUrl }: ConsoleRooms): readonly Route[] {
  if (!of) return [];
  const { sessions, clientCredentials } = of;
  const own = fromOwnPage(baseUrl);
  const told = documentReply(
    {
      data: {
        link: true,
        providers: sessions.providers.map((name) => ({ name })),
        client_credentials: clientCredentials,
      },
    },
    'no-store',
  );
  const answers = {
    POST: walk([own, unguessed(limits), readBody, exchanging(sessions, limits)]),
    DELETE: ending({ tokens, limits, sessions }, own),
  };
  return [
    { pattern: '/console/ways', answers: { GET: () => told }, isOwn: true },
    {
      pattern: '/console/provider',
      answers: { POST: walk([own, readBody, departing(sessions)]) },
      isOwn: true,
    },
    { pattern: '/console/token', answers, isOwn: true },
  ];
}

/** Nobody looks at another code of an address that has sent too many wrong ones. */
function unguessed({ guesses }: RateLimits): Stage {
  return (call) => {
    // Who leaves early is to be known as well.
    call.address();
    return guesses?.admit(call);
  };
}

function departing(sessions: Sessions): Stage {
  return async (call) => {
    const { name } = readData(departureSchema, call.body ?? '');
    const departure = await sessions.depart(name);
    if (departure === 'unavailable') throw new Fault('provider_unavailable');
    if (!departure)
      throw new Fault('invalid', [{ field: 'data.name', rule: 'is no provider of the console' }]);
    const { authorizationEndpoint, clientId, issuer, scope, redirectUri } = departure;
    const data = {
      ...{ authorization_endpoint: authorizationEndpoint, client_id: clientId, issuer, scope },
      redirect_uri: redirectUri,
    };
    return { status: 200, headers: NO_STORE, body: JSON.stringify({ data }) };
  };
}

function exchanging(sessions: Sessions, { guesses }: RateLimits): Stage {
  return async (call) => {
    const session = await begun(sessions, readData(exchangeSchema, call.body ?? ''), call);
    if (typeof session === 'object') return granted(session);
    if (session === 'unavailable') throw new Fault('provider_unavailable');
    if (session === 'rightless') {
      call.refused = 'insufficient scope';
      return NO_RIGHT;
    }
    call.refused = 'bad credentials';
    guesses?.note(call);
    return CODE_REFUSED;
  };
}

function begun(sessions: Sessions, said: z.output<typeof exchangeSchema>, call: Call) {
  const { code, name = '', code_verifier: codeVerifier = '', nonce = '', iss } = said;
  const from = { address: call.address(), requestId: call.requestId };
  if (said.grant === 'link') return sessions.byLink(code, from);
  return sessions.byProvider(name, { code, codeVerifier, nonce, iss }, from);
}

function ending(
  { tokens, limits, sessions }: Pick<ConsoleRooms, 'tokens' | 'limits'> & { sessions: Sessions },
  own: Stage,
): Answer {
  const end: Stage = async (call) => {
    const token = await tokens.inspect(bearerToken(call.authorization() ?? '') ?? '');
    return token && (await sessions.end(token, { address: call.address(), requestId: call.requestId }))
      ? SIGNED_OUT
      : NO_RIGHT;
  };
  return walk([own, noteAddress, authenticate(tokens, limits), end]);
}

function granted({ token, expiresIn, scopes, realms, actor, label }: Session): Reply {
  const data = {
    access_token: token,
    expires_in: expiresIn,
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    actor,
    label,
  };
  return { status: 200, headers: NO_STORE, body: JSON.stringify({ data }) };
}
