import { attempt, type Fetch, type Outcome, type Question } from './attempt.ts';
import { AuthrealmError, readComplaints, wordsOf } from './error.ts';
import { clock, isDoubtful, type Patience, pause, pauseBefore } from './patience.ts';

/** The service, and the time limits of requests. */
export interface Line extends Patience {
  readonly fetch: Fetch;
  /** URL of the service, without a final slash. */
  readonly url: string;
  /** Timeout of one attempt. */
  readonly timeoutMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined if the response has no body. */
  readonly body: unknown;
  /** The service may have processed an earlier attempt. */
  readonly isUncertain: boolean;
}

/** The same for every attempt, except for the Authorization header: the token may be renewed in between. */
export interface Request extends Omit<Question, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

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
export async function exchange(line: Line, request: Request, identity?: Identity): Promise<Answer> {
  const startedAt = clock();
  let isUncertain = false;
  let isRenewed = false;
  for (let done = 1; ; done += 1) {
    const own = await identity?.headers(request.signal);
    const headers = { ...request.headers, ...own };
    const timing = { timeoutMs: line.timeoutMs, signal: request.signal };
    const outcome = await attempt(line.fetch, line.url, { ...request, headers }, timing);
    if (isRefused(outcome) && own !== undefined && !isRenewed && identity?.renew(own)) {
      isRenewed = true;
      done -= 1;
      continue;
    }
    const wait = pauseBefore(outcome, done, startedAt, line);
    if (wait === undefined) return answerOf(outcome, request, isUncertain);
    isUncertain ||= isDoubtful(outcome);
    await pause(wait, request.signal);
  }
}

function isRefused(outcome: Outcome): boolean {
  return outcome.kind === 'answered' && outcome.status === 401;
}

function answerOf(outcome: Outcome, request: Request, wasUncertain: boolean): Answer {
  const isUncertain = wasUncertain || isDoubtful(outcome);
  const what = `${request.method} ${request.path.split('?', 1)[0]}`;
  if (outcome.kind === 'lost') {
    throw new AuthrealmError(`${what} failed without a response: ${outcome.reason}`, { isUncertain });
  }
  const { status, headers } = outcome;
  const body = parse(outcome.text);
  const circumstances = { status, requestId: headers.get('x-request-id') ?? undefined, isUncertain };
  if (status >= 200 && status < 300) {
    if (body === UNREADABLE)
      throw new AuthrealmError(`${what} was answered ${status} without JSON`, circumstances);
    return { status, headers, body, isUncertain };
  }
  const errors = readComplaints(body);
  throw new AuthrealmError(`${what} was answered ${status} ${wordsOf(errors) || adviceOf(status)}`.trim(), {
    ...circumstances,
    errors,
  });
}

const UNREADABLE = Symbol('no JSON');

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return UNREADABLE;
  }
}

/** Browsers report an unfollowed redirect as status 0. */
function adviceOf(status: number): string {
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  return isRedirect ? '(redirects are not followed: use the URL of the service itself)' : '';
}
