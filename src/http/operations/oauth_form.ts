import type { z } from 'zod';
import { type OAuthError, oauthError } from '../../access/clients/client_credentials.ts';
import type { GrantToken } from '../../access/tokens/token_grant.ts';
import type { Authentication } from '../../app/authentication.ts';
import { Fault, GRANT_FAULTS, type GrantFaultCode } from '../../model/fault.ts';
import type { Principal } from '../../model/principal.ts';
import { fixedHeader, jsonAnswer, NOT_STORED } from '../openapi/responses.ts';
import { readText } from '../pipeline/body.ts';
import type { Call, CallHandler } from '../pipeline/call.ts';
import type { OperationDeps } from '../pipeline/pipeline.ts';
import { errorEntry, JSON_TYPE, type Reply } from '../server/reply.ts';

/** The form that a caller sent. */
interface Form<P extends string> {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly value: (name: P) => string | undefined;
}

/** The parameters that an endpoint reads. */
export interface FormRules<P extends string> {
  readonly parameters: readonly P[];
  /** Rejects a request before the client is authenticated. */
  readonly refuse?: (value: Form<P>['value']) => OAuthError | undefined;
  /** Whether the ID of the client is enough. */
  readonly isImplicit?: (value: Form<P>['value']) => boolean;
}

/** The dependencies of the token endpoints. */
export interface OAuthDeps
  extends OperationDeps,
    Pick<Authentication, 'authenticateClient' | 'identifyClient' | 'desk'> {
  readonly grant: GrantToken;
}

/** Responses of these endpoints contain secrets. */
const NO_STORE = { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const;

export function secretReply(body: object): Reply {
  return { status: 200, headers: NO_STORE, body: JSON.stringify(body) };
}

/** Their headers in the OpenAPI document. */
export const SECRET_HEADERS = {
  ...NOT_STORED,
  Pragma: fixedHeader('For HTTP/1.0 caches.', 'no-cache'),
};

/** Such a response in the OpenAPI document. */
export function secretAnswer(description: string, schema: z.ZodType, example: unknown) {
  return jsonAnswer(description, SECRET_HEADERS, schema, example);
}

/**
 * An endpoint that reads a form and the credentials of a client (RFC 6749, 2.3.1 and 3.2). The body is read
 * as a form under any media type, because existing clients declare it as JSON (docs/wire.md#tokens). A wrong secret is counted
 * by address, a right one by client, before the request is answered. The client was authenticated, or only its ID names it.
 */
export function formEndpoint<P extends string>(
  { parameters, refuse, isImplicit }: FormRules<P>,
  { authenticateClient, identifyClient, limits, loopBudget }: OAuthDeps,
  answer: (call: Call, client: Principal, value: Form<P>['value']) => Promise<Reply | OAuthError>,
): CallHandler {
  return async (call) => {
    const form = await readForm(call.request, parameters);
    if ('kind' in form) return refusalReply(form);
    await loopBudget.admit(call);
    const refusedForm = refuse?.(form.value);
    if (refusedForm) return refusalReply(refusedForm);
    const identify = isImplicit?.(form.value) ? identifyClient : authenticateClient;
    const client = await identify(form);
    if ('kind' in client) {
      call.refused = 'bad credentials';
      call.client = client.clientId;
      limits.badCredentials?.countFailure(call);
      return refusalReply(client);
    }
    // An ID alone is no credential, because every caller can know it.
    call.client = client.implicit ? undefined : client.clientId;
    const limited = limits.caller(call, client);
    if (limited) return limited;
    const answered = await answer(call, client, form.value);
    return 'kind' in answered ? refusalReply(answered) : answered;
  };
}

async function readForm<P extends string>(
  request: Request,
  parameters: readonly P[],
): Promise<Form<P> | OAuthError> {
  try {
    return read(request, await readText(request), [...parameters, 'client_id', 'client_secret']);
  } catch (error) {
    if (error instanceof Fault && error.code === 'malformed') return refuse('the body is not UTF-8 text');
    throw error;
  }
}

const refuse = (description: string) => oauthError('invalid_request', description);

function read(request: Request, body: string, names: readonly string[]): Form<string> | OAuthError {
  const query = new URLSearchParams(/\?(.*)$/.exec(request.url)?.[1]);
  if (names.some((name) => query.has(name))) {
    return refuse('parameters belong in the body: a query ends up in logs');
  }
  const form = new URLSearchParams(body);
  const doubled = names.find((name) => form.getAll(name).length > 1);
  if (doubled) return refuse(`${doubled} is given more than once`);
  const value = (name: string) => form.get(name) ?? undefined;
  const basic = readBasic(request.headers.get('authorization'));
  if (basic === 'malformed') return refuse('the Basic credentials cannot be read');
  if (basic && (form.has('client_id') || form.has('client_secret'))) {
    return refuse('send the client credentials once: in the header or in the body');
  }
  return {
    clientId: basic ? basic.id : value('client_id'),
    clientSecret: basic ? basic.secret : value('client_secret'),
    value,
  };
}

/** RFC 6749, 2.3.1: both halves are form-encoded before they are joined. Other schemes are ignored. */
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

/** Both error forms: RFC 6749, 5.2 for OAuth clients, `errors` for the others. */
export function refusalBody(code: GrantFaultCode, description: string): object {
  return { error: code, error_description: description, errors: [errorEntry(code, description)] };
}

function refusalReply({ code, description }: OAuthError): Reply {
  const status = GRANT_FAULTS[code];
  const challenge: Record<string, string> =
    status === 401 ? { 'WWW-Authenticate': 'Basic realm="authrealm"' } : {};
  return {
    status,
    headers: { ...NO_STORE, ...challenge },
    body: JSON.stringify(refusalBody(code, description)),
    fault: code,
  };
}
