import { FAULTS, Fault, OVERLOAD_CAUSES } from '../../src/model/fault.ts';

/** A machine may be busy for a minute. */
const TRIES_MAX = 60;

type Answer = Pick<Response, 'status' | 'headers'>;

/**
 * Sends a request again after its Retry-After while it is answered 503 and `isRetryable` holds, at most TRIES_MAX times. Each
 * retry is printed: on an idle machine there should be none.
 */
export async function sendWithRetry<A extends Answer>(
  send: () => Promise<A>,
  isRetryable: (answer: A) => boolean | Promise<boolean> = () => true,
): Promise<A> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send();
    if (answer.status !== 503 || tries === TRIES_MAX || !(await isRetryable(answer))) return answer;
    const seconds = Number(answer.headers.get('retry-after'));
    if (!(seconds > 0)) throw new Error('the 503 response has no Retry-After');
    console.warn(`503: sent again after ${seconds} s`);
    await Bun.sleep(seconds * 1_000);
  }
}

/** Repeats work that was not done in time, on a busy machine for example. */
export async function doWithRetry<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Fault && FAULTS[error.code].status === 503)) throw error;
      await Bun.sleep(100);
    }
  }
}

/** `fetch` for client programs that return a 503 to their caller. */
export function fetchWithRetry(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  return sendWithRetry(
    () => fetch(input instanceof Request ? (input.clone() as Request) : input, init),
    isOverloaded,
  );
}

/**
 * Whether a request was rejected as overloaded, which happens to work of the lowest priority on a busy machine, and not
 * because the database does not respond.
 */
export async function isOverloaded(answer: Response | { readonly text: string }): Promise<boolean> {
  const text = answer instanceof Response ? await answer.clone().text() : answer.text;
  return Object.values(OVERLOAD_CAUSES).some((detail) => text.includes(detail));
}
