import { z } from 'zod';
import type { Session, Sessions } from '../access/sessions.ts';
import type { Tokens } from '../access/token.ts';
import { readData } from './admin/reading.ts';
import { authenticate, bearerToken } from './bearer.ts';
import { readBody } from './body.ts';
import { type Answer, type Call, type Stage, walk } from './call.ts';
import { NO_STORE } from './oauth_form.ts';
import { fromOwnPage } from './own_origin.ts';
import type { RateLimits } from './rate_limits.ts';
import { documentReply, faultReply, type Reply } from './reply.ts';
import type { Route } from './router.ts';

/** What the console may be signed in by, beside links. */
export interface ConsoleWays {
  readonly clientCredentials: boolean;
}

export interface ConsoleRooms {
  readonly tokens: Tokens;
  readonly limits: RateLimits;
  readonly baseUrl: string;
  /** Undefined where there is no console. */
  readonly console: { readonly sessions: Sessions; readonly ways: ConsoleWays } | undefined;
}

/** What is exchanged for a session. */
export const exchangeSchema = z.object({
  grant: z.literal('link'),
  code: z.string().min(1).max(255),
});

const CODE_REFUSED: Reply = faultReply('code_refused');
const NO_SESSION = faultReply('insufficient_scope', {
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
  const { sessions, ways } = of;
  const own = fromOwnPage(baseUrl);
  const told = documentReply(
    { data: { link: true, providers: [], client_credentials: ways.clientCredentials } },
    'no-store',
  );
  const answers = {
    POST: walk([own, unguessed(limits), readBody, exchanging(sessions, limits)]),
    DELETE: ending({ tokens, limits, sessions }, own),
  };
  return [
    { pattern: '/console/ways', answers: { GET: () => told }, isOwn: true },
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

function exchanging(sessions: Sessions, { guesses }: RateLimits): Stage {
  return async (call) => {
    const { code } = readData(exchangeSchema, call.body ?? '');
    const session = await sessions.byLink(code, whence(call));
    if (session) return granted(session);
    call.refused = 'bad credentials';
    guesses?.note(call);
    return CODE_REFUSED;
  };
}

function ending(
  { tokens, limits, sessions }: Pick<ConsoleRooms, 'tokens' | 'limits'> & { sessions: Sessions },
  own: Stage,
): Answer {
  const end: Stage = async (call) => {
    const token = await tokens.inspect(bearerToken(call.authorization() ?? '') ?? '');
    return token && (await sessions.end(token, whence(call))) ? SIGNED_OUT : NO_SESSION;
  };
  const known: Stage = (call) => {
    call.address();
    return undefined;
  };
  return walk([own, known, authenticate(tokens, limits), end]);
}

function whence(call: Call) {
  return { address: call.address(), requestId: call.requestId };
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
