import { attempt, type Fetch, type Outcome, type Question } from './attempt.ts';
import { AuthrealmError, readComplaints, wordsOf } from './error.ts';
import { clock, isDoubtful, type Patience, pause, pauseBefore } from './patience.ts';

/** Where requests go, and how long they may take. */
export interface Line extends Patience {
  readonly fetch: Fetch;
  /** Of the service, without a slash at its end. */
  readonly url: string;
  /** Of one attempt. */
  readonly timeoutMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where the answer has no body. */
  readonly body: unknown;
  /** An attempt before this answer may have been carried out. */
  readonly isUncertain: boolean;
}

/** The same for every attempt, but for the headers: a token may be renewed between two of them. */
export interface Request extends Omit<Question, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Who the caller is: the header of an attempt, and what to do where it was refused. */
export interface Identity {
  headers(signal: AbortSignal | undefined): Promise<Readonly<Record<string, string>>>;
  /** Whether another attempt would carry another token than these headers. */
  renew(refused: Readonly<Record<string, string>>): boolean;
}

/**
 * Sends a request until it is answered, refused for good, or patience ends. A request must mean the same when it is sent
 * twice. Throws AuthrealmError for every answer that is no success, or the reason of the caller's signal.
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
    throw new AuthrealmError(`${what} was not answered: ${outcome.reason}`, { isUncertain });
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

/** A browser tells a redirect by the status 0. */
function adviceOf(status: number): string {
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  return isRedirect ? '(a redirect, which is not followed: give the URL of the service itself)' : '';
}
