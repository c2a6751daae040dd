import type { GrantAnswer, GrantRequest, GrantToken } from '../access/grant.ts';
import { FAULTS, Fault, GRANT_FAULTS, type GrantFaultCode } from '../domain/fault.ts';
import { readText } from './body.ts';
import type { Answer, Call } from './call.ts';
import type { RateLimits } from './rate_limits.ts';
import { errorBody, JSON_TYPE, type Reply } from './reply.ts';

/** What a refused request of the token endpoint is answered with. */
type Refusal = Extract<GrantAnswer, { kind: 'refused' }>;

const NO_STORE = { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const;
const PARAMETERS = ['grant_type', 'client_id', 'client_secret', 'scope'] as const;

/**
 * The token endpoint (RFC 6749, 3.2). The body is a form whatever media type it arrives under, because existing
 * clients send it as JSON (contract 4.1).
 */
export function tokenEndpoint(grant: GrantToken, { client, guesses }: RateLimits): Answer {
  /** A guessed secret counts for the address, a granted token for the client. */
  function count(call: Call, answer: GrantAnswer, clientId = ''): Reply | undefined {
    if (answer.kind === 'granted') return client?.(call, clientId);
    if (answer.code === 'invalid_client') guesses?.note(call);
    return undefined;
  }

  return async (call) => {
    const { request } = call;
    const refused = guesses?.admit(call);
    if (refused) return refused;
    try {
      const asked = readRequest(request, await readText(request));
      if ('kind' in asked) return refusalReply(asked);
      const answer = await grant(asked);
      return count(call, answer, asked.clientId) ?? reply(answer, asked);
    } catch (error) {
      if (error instanceof Fault && error.code === 'malformed') {
        return refusalReply(refuse('invalid_request', 'the body is not UTF-8 text'));
      }
      throw error;
    }
  };
}

function refuse(code: GrantFaultCode, description: string): Refusal {
  return { kind: 'refused', code, description };
}

function readRequest(request: Request, body: string): GrantRequest | Refusal {
  const query = new URLSearchParams(/\?(.*)$/.exec(request.url)?.[1]);
  if (PARAMETERS.some((name) => query.has(name))) {
    return refuse('invalid_request', 'parameters belong in the body: a query ends up in logs');
  }
  const form = new URLSearchParams(body);
  const doubled = PARAMETERS.find((name) => form.getAll(name).length > 1);
  if (doubled) return refuse('invalid_request', `${doubled} is given more than once`);
  const value = (name: (typeof PARAMETERS)[number]) => form.get(name) ?? undefined;
  const basic = readBasic(request.headers.get('authorization'));
  if (basic === 'malformed') return refuse('invalid_request', 'the Basic credentials cannot be read');
  if (basic && (form.has('client_id') || form.has('client_secret'))) {
    return refuse('invalid_request', 'send the client credentials once: in the header or in the body');
  }
  return {
    grantType: value('grant_type'),
    clientId: basic ? basic.id : value('client_id'),
    clientSecret: basic ? basic.secret : value('client_secret'),
    scope: value('scope'),
  };
}

/** RFC 6749, 2.3.1: both halves are form-encoded before they are joined. Any other scheme is none of ours here. */
function readBasic(header: string | null): { id: string; secret: string } | 'malformed' | undefined {
  if (header === null || !/^basic(?: |$)/i.test(header)) return undefined;
  const joined = Buffer.from(header.slice(6).trim(), 'base64').toString('utf8');
  const colon = joined.indexOf(':');
  if (colon < 0) return 'malformed';
  try {
    return { id: formDecode(joined.slice(0, colon)), secret: formDecode(joined.slice(colon + 1)) };
  } catch {
    return 'malformed';
  }
}

function formDecode(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

function reply(answer: GrantAnswer, asked: GrantRequest): Reply {
  if (answer.kind === 'refused') return refusalReply(answer);
  const { minted, scopes } = answer;
  const body = {
    access_token: minted.token,
    token_type: 'Bearer',
    expires_in: minted.expiresIn,
    expires: minted.expires,
    identifier: asked.grantType,
    scope: [...scopes].join(' '),
  };
  return { status: 200, headers: NO_STORE, body: JSON.stringify(body) };
}

/** Both forms at once: RFC 6749, 5.2 for OAuth clients, the family's `errors` for the others. */
function refusalReply({ code, description }: Refusal): Reply {
  const status = GRANT_FAULTS[code];
  const { title } = status === 401 ? FAULTS.unauthenticated : FAULTS.malformed;
  const body = { error: code, error_description: description, ...errorBody(status, title, description) };
  const challenge: Record<string, string> =
    status === 401 ? { 'WWW-Authenticate': 'Basic realm="authrealm"' } : {};
  return { status, headers: { ...NO_STORE, ...challenge }, body: JSON.stringify(body), fault: code };
}
