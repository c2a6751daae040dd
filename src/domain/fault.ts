/** The member or parameter that breaks a rule, and the rule: names only, never values. */
export interface FieldError {
  readonly field: string;
  readonly rule: string;
  /** The whole detail of its error, where clients know another one. */
  readonly detail?: string;
}

interface FaultRow {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** The same request may succeed a second later: the answer has `Retry-After`. */
  readonly isRetryable?: true;
  /** The kind of field that its errors name. Field errors of a fault without a source are not returned. */
  readonly source?: 'pointer' | 'parameter' | 'dependency';
  /** A field error for the OpenAPI document. */
  readonly example?: FieldError;
}

/**
 * The table of all error answers. `status`, `title` and `detail` are public (docs/wire.md#errors); none of them repeats
 * a value of the request. Each code has a page in docs/faults/; its comment is its meaning in docs/reference/faults.md.
 */
const ROWS = {
  /** The body is not JSON. */
  malformed: {
    status: 400,
    title: 'Bad Request',
    detail: 'The request body could not be read',
    source: 'pointer',
    example: { field: 'body', rule: 'is not JSON' },
  },
  /** A member breaks its rule. */
  invalid: {
    status: 400,
    title: 'Bad Request',
    detail: 'The request has an invalid field',
    source: 'pointer',
    example: { field: 'data.name', rule: 'must not be blank' },
  },
  /** The sign-in code of the console is not valid. */
  invalid_sign_in_code: {
    status: 400,
    title: 'Bad Request',
    detail: 'The code is not valid; it was used, came too late, or never was',
  },
  /** A username or a password is wrong. */
  authentication_failed: { status: 400, title: 'Bad Request', detail: 'authentication failed' },
  /** The filter cannot be parsed. */
  malformed_filter: {
    status: 400,
    title: 'Bad Request',
    detail: 'Could not parse the supplied filter',
    source: 'parameter',
    example: { field: 'filter', rule: 'at character 1: an operator was expected' },
  },
  /** A parameter breaks its rule. */
  invalid_query: {
    status: 400,
    title: 'Bad Request',
    detail: 'The request has an invalid parameter',
    source: 'parameter',
    example: { field: 'page[limit]', rule: 'must be a whole number from 1 to 100' },
  },
  /** There is no token, or an invalid one. */
  unauthenticated: { status: 401, title: 'Unauthorized', detail: 'Unable to validate access token' },
  /** There is no account token, or an invalid one. */
  invalid_account_token: { status: 401, title: 'Unauthorized', detail: 'Unable to validate access token' },
  /** The token lacks the scope. */
  insufficient_scope: { status: 403, title: 'Forbidden', detail: 'forbidden' },
  /** A page of another origin sent the request. */
  foreign_origin: {
    status: 403,
    title: 'Forbidden',
    detail: 'This is for pages of the base URL alone',
  },
  /** No such record exists for this caller. */
  not_found: { status: 404, title: 'Not Found', detail: 'Resource not found', source: 'pointer' },
  /** No such path exists. */
  unknown_route: { status: 404, title: 'Not Found', detail: 'No such path; /openapi.json lists them all' },
  /** The console is not built. */
  console_not_built: {
    status: 404,
    title: 'Not Found',
    detail: 'The console is not built; npm run prepare builds it',
  },
  /** The path has no such method. */
  method_not_allowed: {
    status: 405,
    title: 'Method Not Allowed',
    detail: 'The Allow header lists the methods of this path',
  },
  /** A request with this key is in progress. */
  idempotency_key_in_use: {
    status: 409,
    title: 'Conflict',
    detail: 'A request with this Idempotency-Key is being answered; try again',
    isRetryable: true,
  },
  /** The cursor of the feed has expired. */
  expired_cursor: {
    status: 410,
    title: 'Gone',
    detail: 'The change that this cursor stands behind is gone, or never was in this database',
  },
  /** The record has changed since it was read. */
  precondition_failed: {
    status: 412,
    title: 'Precondition Failed',
    detail: 'The record is no longer the one that If-Match names',
    source: 'pointer',
  },
  /** The body did not arrive in time. */
  request_timeout: { status: 408, title: 'Request Timeout', detail: 'The body did not arrive in time' },
  /** The body is over 65,536 bytes. */
  body_too_large: { status: 413, title: 'Content Too Large', detail: 'The body is over 65536 bytes' },
  /** The path does not accept this media type. */
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported Media Type',
    detail: 'Send the body in the media type this path reads',
  },
  /** The request is well-formed, but not possible. */
  conflict: {
    status: 422,
    title: 'Unprocessable Entity',
    detail: 'Constraint violation',
    source: 'pointer',
    example: { field: 'data.id', rule: 'must be the identifier in the path' },
  },
  /** The key was used with another body. */
  idempotency_key_reused: {
    status: 422,
    title: 'Unprocessable Entity',
    detail: 'This Idempotency-Key was used with another body',
  },
  /** There were too many requests from this client or address. */
  rate_limited: {
    status: 429,
    title: 'Too Many Requests',
    detail: 'Retry-After says in how many seconds to ask again',
  },
  /** An unexpected error occurred. */
  internal: {
    status: 500,
    title: 'Internal Server Error',
    detail: 'there was a problem processing your request',
  },
  /** User sign-in is not implemented. */
  not_implemented: {
    status: 501,
    title: 'Not Implemented',
    detail: 'Sign-in is not offered by this service',
  },
  /** A dependency is not available, or the service stops. */
  not_ready: {
    status: 503,
    title: 'Service Unavailable',
    detail: 'A dependency is in trouble, or the service stops; try again',
    isRetryable: true,
    source: 'dependency',
  },
  /** The write may have been committed. */
  unknown_outcome: {
    status: 503,
    title: 'Service Unavailable',
    detail: 'The write may have landed; to repeat it with the same Idempotency-Key is safe',
    isRetryable: true,
  },
  /** Too much work of this kind is waiting. */
  overloaded: {
    status: 503,
    title: 'Service Unavailable',
    detail: 'Too much work of this kind is waiting; try again',
    isRetryable: true,
  },
  /** The identity provider does not answer. */
  provider_unavailable: {
    status: 503,
    title: 'Service Unavailable',
    detail: 'The identity provider does not answer as it should; try again',
    isRetryable: true,
  },
  /** The database did not answer in time. */
  unavailable: {
    status: 503,
    title: 'Service Unavailable',
    detail: 'The database did not answer in time; try again',
    isRetryable: true,
  },
} as const satisfies Record<string, FaultRow>;

export type FaultCode = keyof typeof ROWS;

export const FAULTS: Readonly<Record<FaultCode, FaultRow>> = ROWS;

/** The thrown form of an error answer. `fieldErrors` are public; `cause` is only logged. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly fieldErrors: readonly FieldError[];
  /** The same request may succeed later: no idempotency record keeps this answer. */
  readonly isPassing: boolean;

  constructor(code: FaultCode, fieldErrors: readonly FieldError[] = [], cause?: unknown, isPassing = false) {
    super(code, { cause });
    this.code = code;
    this.fieldErrors = fieldErrors;
    this.isPassing = isPassing;
  }
}

/** Why work was rejected or given up: the details of `overloaded`. */
export const OVERLOAD_CAUSES = {
  QUEUE_FULL: FAULTS.overloaded.detail,
  CONCURRENCY_LIMIT: 'Too many requests of this kind are in progress; try again',
  DEADLINE_EXCEEDED: 'The work could not be done in time; try again',
  WORKER_TIMEOUT: 'The process for this work did not finish in time; try again',
  WORKER_START_TIMEOUT: 'The process for this work did not start in time; try again',
  WORKER_START_FAILED: 'The process for this work cannot be started; try again',
  WORKER_EXITED: 'The process for this work exited; try again',
  POOL_CLOSED: 'The service is stopping; try again',
  REVOCATION_LIMIT: 'Too many revoked tokens of this client have not expired; try again',
} as const;

export type OverloadCause = keyof typeof OVERLOAD_CAUSES;

/** Work that was rejected or given up under load; the log and the answer show the cause. */
export function overloaded(code: OverloadCause): Fault {
  return new Fault('overloaded', [], Object.assign(new Error('the work was not done'), { code }));
}

/** Codes of the token endpoint (RFC 6749, 5.2), each with its status. */
export const GRANT_FAULTS = {
  /** The token request cannot be read. */
  invalid_request: 400,
  /** The client ID or the secret is wrong. */
  invalid_client: 401,
  /** Only `client_credentials` is supported. */
  unsupported_grant_type: 400,
  /** The client does not hold a requested scope. */
  invalid_scope: 400,
} as const;

export type GrantFaultCode = keyof typeof GRANT_FAULTS;

/**
 * An error that the operator can correct: its message says what failed and what to do. It is printed without a stack, the
 * command ends with exit code 1, and it never holds a secret.
 */
export class Refusal extends Error {
  /** The error is in the command line or a setting. */
  readonly isUsage: boolean;

  constructor(message: string, options: { readonly cause?: unknown; readonly isUsage?: boolean } = {}) {
    super(message, { cause: options.cause });
    this.isUsage = options.isUsage ?? false;
  }
}
