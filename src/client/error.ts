/** One error object of an error response. */
export interface ErrorObject {
  readonly status: string;
  readonly title: string;
  readonly detail?: string;
  /** The section of docs/reference/faults.md that describes the error. */
  readonly code?: string;
  /** The cause: a JSON pointer into the body, or a query parameter. */
  readonly source?: { readonly pointer?: string; readonly parameter?: string };
}

/**
 * A failed request. Its message contains the method, the path and the error titles and details of the service: never a
 * secret, a token, a query or a body.
 */
export class AuthrealmError extends Error {
  override readonly name = 'AuthrealmError';
  /** The status of the response; undefined without one. */
  readonly status: number | undefined;
  /** The error objects of the response; empty if it has none. */
  readonly errors: readonly ErrorObject[];
  /** The ID of the request in the logs of the service. */
  readonly requestId: string | undefined;
  /** An attempt of this request was lost, and the service may have processed it. */
  readonly isUncertain: boolean;
  /** Why there is no response: an error code of the runtime such as `ECONNREFUSED`, or a timeout; undefined with a response. */
  readonly reason: string | undefined;
  /** Seconds to wait before the next request, as the response asks; undefined if it does not. */
  readonly retryAfterS: number | undefined;

  constructor(message: string, details: Partial<Omit<AuthrealmError, keyof Error>> = {}) {
    super(message);
    const { status, errors = [], requestId, isUncertain = false, reason, retryAfterS } = details;
    this.reason = reason;
    this.retryAfterS = retryAfterS;
    this.status = status;
    this.errors = errors;
    this.requestId = requestId;
    this.isUncertain = isUncertain;
  }
}

/** Whether the record has changed since `ifMatch` was read (status 412). */
export function isStale(error: unknown): error is AuthrealmError & { readonly status: 412 } {
  return error instanceof AuthrealmError && error.status === 412;
}

/** Whether the record does not exist, or this client may not see it (status 404). */
export function isAbsent(error: unknown): error is AuthrealmError & { readonly status: 404 } {
  return error instanceof AuthrealmError && error.status === 404;
}

const ERRORS_MAX = 20;
const SUMMARY_LENGTH_MAX = 2_000;

/** The error objects of a response body (docs/wire.md#errors); empty for any other body. A proxy may answer with any JSON. */
export function readErrors(body: unknown): readonly ErrorObject[] {
  const errors = (body as { errors?: unknown } | null | undefined)?.errors;
  if (!Array.isArray(errors)) return [];
  const titled = errors.filter((each) => typeof each?.title === 'string').slice(0, ERRORS_MAX);
  return titled.map(({ detail, ...each }) => (typeof detail === 'string' ? { ...each, detail } : each));
}

/** All errors in one line. */
export function summaryOf(errors: readonly ErrorObject[]): string {
  const all = errors.map(({ title, detail }) => (detail ? `${title}: ${detail}` : title)).join('; ');
  return all.slice(0, SUMMARY_LENGTH_MAX);
}
