import {
  type AttemptOutcome,
  attemptRequest,
  type ServiceConnection,
  type ServiceRequest,
} from './attempt.ts';
import { AuthrealmError, readErrors, summaryOf } from './error.ts';
import { mayHaveExecuted, retryAfterMs, retryDelay, sleep } from './retries.ts';

export interface ServiceResponse {
  readonly headers: Headers;
  /** Undefined if the response has no body. */
  readonly body: unknown;
}

export const JSON_BODY = { 'Content-Type': 'application/json' } as const;

/** Sends an authenticated request. */
export type SendRequest = (request: ServiceRequest) => Promise<ServiceResponse>;

/** Authenticates attempts. */
export interface Identity {
  headers(signal: AbortSignal | undefined): Promise<Readonly<Record<string, string>>>;
  /** Discards the token of the rejected headers. Returns whether another attempt would send another token. */
  renew(refused: Readonly<Record<string, string>>): boolean;
}

/**
 * Sends a request, with retries, until the service answers, retries are exhausted or time is up. The request must be
 * idempotent. Throws AuthrealmError for every response without success, or the reason of the caller's signal.
 */
export async function sendWithRetries(
  connection: ServiceConnection,
  request: ServiceRequest,
  identity?: Identity,
): Promise<ServiceResponse> {
  const startedAt = performance.now();
  let isUncertain = false;
  let isRenewed = false;
  for (let done = 1; ; done += 1) {
    // The same for every attempt, except for the Authorization header: the token may be renewed in between.
    const own = await identity?.headers(request.signal);
    const outcome = await attemptRequest(connection, request, { ...request.headers, ...own });
    const isUnauthorized = outcome.kind === 'answered' && outcome.status === 401;
    if (isUnauthorized && own !== undefined && !isRenewed && identity?.renew(own)) {
      isRenewed = true;
      done -= 1;
      continue;
    }
    const wait = retryDelay(outcome, done, startedAt, connection);
    if (wait === undefined) return responseOf(outcome, request, isUncertain);
    isUncertain ||= mayHaveExecuted(outcome);
    await sleep(wait, request.signal);
  }
}

function responseOf(
  outcome: AttemptOutcome,
  request: ServiceRequest,
  wasUncertain: boolean,
): ServiceResponse {
  const isUncertain = wasUncertain || mayHaveExecuted(outcome);
  const what = `${request.method} ${request.path.split('?', 1)[0]}`;
  if (outcome.kind === 'lost') {
    const { reason } = outcome;
    throw new AuthrealmError(`${what} failed without a response: ${reason}`, { isUncertain, reason });
  }
  const { status, headers } = outcome;
  const body = parseJson(outcome.text);
  const circumstances = { status, requestId: headers.get('x-request-id') ?? undefined, isUncertain };
  if (status >= 200 && status < 300) {
    if (body === NOT_JSON)
      throw new AuthrealmError(`${what} was answered ${status} without JSON`, circumstances);
    return { headers, body };
  }
  const errors = readErrors(body);
  const wait = retryAfterMs(headers);
  throw new AuthrealmError(
    `${what} was answered ${status} ${summaryOf(errors) || redirectAdvice(status)}`.trim(),
    {
      ...circumstances,
      errors,
      retryAfterS: wait === undefined ? undefined : Math.ceil(wait / 1_000),
    },
  );
}

const NOT_JSON = Symbol('no JSON');

function parseJson(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
}

/** Browsers report an unfollowed redirect as status 0. */
function redirectAdvice(status: number): string {
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  return isRedirect ? '(redirects are not followed: use the URL of the service itself)' : '';
}
