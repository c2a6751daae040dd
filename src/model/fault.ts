/** The member or parameter that breaks a rule, and the rule: names only, never values. */
export interface FieldError {
  readonly field: string;
  readonly rule: string;
  /** The whole detail of its error, where clients know another one. */
  readonly detail?: string;
}

/** Titles of errors by status. Clients of the API that authrealm is compatible with know them. */
export const TITLES = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Entity',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
} as const;

/** The same request may succeed a second later: the answer has `Retry-After: 1`. */
export const RETRYABLE: ReadonlySet<number> = new Set([409, 503]);

interface FaultRow {
  readonly status: keyof typeof TITLES;
  readonly detail: string;
  /** The kind of field that its errors name. Without a source, at most the `detail` of the first is returned. */
  readonly source?: 'pointer' | 'parameter' | 'dependency';
  /** A field error for the OpenAPI document. */
  readonly example?: FieldError;
  /** The same for what answers add to `detail`. */
  readonly missing?: string;
}

/**
 * The table of all error answers. The code, `status` and `detail` are public (docs/wire.md#errors); none of them repeats a value of the
 * request. `npm run reference` writes the page of errors from it: the comment of a row is its text there.
 */
const ROWS = {
  /** It is empty, not JSON or not UTF-8. */
  malformed: {
    status: 400,
    detail: 'The request body could not be read',
    source: 'pointer',
    example: { field: 'body', rule: 'is not JSON at line 1, column 2' },
  },
  /** Up to 20 fields are reported. */
  invalid: {
    status: 400,
    detail: 'The request has an invalid field',
    source: 'pointer',
    example: { field: 'data.name', rule: 'must not be blank' },
  },
  /**
   * A link is valid once, for 60 seconds. If it was used before you opened it, another person has read it: see docs/audit.md#actions. Or
   * the ID token of a provider was refused.
   */
  invalid_sign_in_code: {
    status: 400,
    detail: 'The code is not valid; it was used, came too late, or never was',
  },
  /** A wrong password or an unknown username; or another realm than the account realm, which the log has as `access.refused`. */
  authentication_failed: { status: 400, detail: 'authentication failed' },
  /** See docs/filters.md. Quote a value with a comma, a parenthesis or a quote. */
  malformed_filter: {
    status: 400,
    detail: 'Could not parse the supplied filter',
    source: 'parameter',
    example: { field: 'filter', rule: 'at character 1: an operator was expected' },
  },
  /** `page[offset]` ends at 10,000: begin with an empty `page[after]` and follow `links.next`. */
  invalid_query: {
    status: 400,
    detail: 'The request has an invalid parameter',
    source: 'parameter',
    example: { field: 'page[limit]', rule: 'must be a whole number from 1 to 100' },
  },
  /** Get a new token: a client may be disabled, a key withdrawn, the base URL another, or clocks differ by 30 seconds. */
  unauthenticated: { status: 401, detail: 'Unable to validate access token', missing: 'none was sent' },
  /** Let the user sign in again: docs/wire.md#account-tokens. */
  invalid_account_token: { status: 401, detail: 'Unable to validate access token', missing: 'none was sent' },
  /** Request a new token; if the client lacks the scope, first run `authrealm client update CLIENT_ID --scope "…"`. */
  insufficient_scope: { status: 403, detail: 'forbidden', missing: 'needs the scope users:read' },
  /** Open the console at the base URL, and set `--base-url` to what browsers use. */
  foreign_origin: { status: 403, detail: 'This is for pages of the base URL alone' },
  /** Realm, user or record do not exist for this caller, or not together, or an ID is not a UUID. */
  not_found: { status: 404, detail: 'Resource not found', source: 'pointer' },
  /** Segments are in lower case. */
  unknown_route: { status: 404, detail: 'No such path; /openapi.json lists them all' },
  /** Run `npm ci` and restart the service, or pass `--no-console`. */
  console_not_built: { status: 404, detail: 'The console is not built; npm run prepare builds it' },
  /** OPTIONS is answered only as a CORS preflight from a listed origin. */
  method_not_allowed: { status: 405, detail: 'The Allow header lists the methods of this path' },
  /** Repeat the request after a second: it gets the response of the first. */
  idempotency_key_in_use: {
    status: 409,
    detail: 'A request with this Idempotency-Key is being answered; try again',
  },
  /**
   * It is older than `--retention-days`, or the database was restored. To catch up, get the current cursor from `GET /v2/changes`, read
   * your records as lists, and continue from it.
   */
  expired_cursor: {
    status: 410,
    detail: 'The change that this cursor stands behind is gone, or never was in this database',
  },
  /** Read the record again, apply the change, and send it with the new ETag. That of a user also changes with its profile infos. */
  precondition_failed: {
    status: 412,
    detail: 'The record is no longer the one that If-Match names',
    source: 'pointer',
  },
  /** A body has 4.5 seconds, and a file 60 without a byte. Let a proxy buffer slow requests. */
  request_timeout: { status: 408, detail: 'The body did not arrive in time' },
  /** The rest of the body was not read. */
  body_too_large: { status: 413, detail: 'The body is over 65536 bytes' },
  /** What was committed before stays. Split the file: a CSV file repeats its header row in each part. */
  upload_too_large: { status: 413, detail: 'The file is over 1073741824 bytes' },
  /** Parameters are allowed, and so is none. */
  unsupported_media_type: { status: 415, detail: 'Send the body as application/json' },
  /**
   * A value must be unique or an e-mail address, a profile does not exist, a redirect URI is neither https nor loopback, an issuer cannot
   * be read or differs, an ID is not that of the path, a record is preset, or over 1,000 records would be deleted.
   */
  conflict: {
    status: 422,
    detail: 'Constraint violation',
    source: 'pointer',
    example: { field: 'data.id', rule: 'must be the identifier in the path' },
  },
  /** Use a new key, such as a random UUID, for each request. */
  idempotency_key_reused: { status: 422, detail: 'This Idempotency-Key was used with another body' },
  /**
   * Too many requests, tokens or failed attempts: see docs/guides/rates-and-overload.md#rates. Keep tokens until they expire, and send
   * `Authrealm-End-User-Address` where all users seem to have one address.
   */
  rate_limited: { status: 429, detail: 'Retry-After says in how many seconds to ask again' },
  /** Please report the log line with the `request_id` in `X-Request-Id`: it has no value of the request. */
  internal: { status: 500, detail: 'there was a problem processing your request' },
  /**
   * `dependencies` names records (`database`), or clients and keys (`access_table`). The log event `fault` has the cause:
   * docs/guides/troubleshooting.md#database-errors.
   */
  not_ready: {
    status: 503,
    detail: 'A dependency is in trouble, or the service stops; try again',
    source: 'dependency',
  },
  /** The connection to PostgreSQL ended during the commit: look for the record before you create it without the key. Repeat an erasure. */
  unknown_outcome: {
    status: 503,
    detail: 'The write may have landed; to repeat it with the same Idempotency-Key is safe',
  },
  /**
   * Nothing was done. Send fewer requests of this kind at a time; for lists use `page[after]`, or filters by `eq`, `in` or a prefix. See
   * docs/guides/rates-and-overload.md#overload.
   */
  overloaded: { status: 503, detail: 'Too much work of this kind is waiting; try again' },
  /** Compare the entry in `--issuers-file`, or the provider's record, with its configuration. The log has the reason. */
  provider_unavailable: {
    status: 503,
    detail: 'The identity provider does not answer as it should; try again',
  },
  /** A write may still be committed: repeat it with the same `Idempotency-Key`. See docs/guides/troubleshooting.md#database-errors. */
  unavailable: { status: 503, detail: 'The database cannot be reached or is too slow; try again' },
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

/** The fault of one member. */
export function conflict(field: string, rule: string, isPassing = false): Fault {
  return new Fault('conflict', [{ field, rule }], undefined, isPassing);
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
  /** `grant_type` is missing, a parameter occurs twice or in the query, credentials cannot be decoded, or the form is not UTF-8. */
  invalid_request: 400,
  /** The client is unknown or disabled, or its secret is wrong; `authrealm client rotate CLIENT_ID` creates a new one. */
  invalid_client: 401,
  /** It is not `client_credentials`, or the ID of this client alone gives nothing. */
  unsupported_grant_type: 400,
  /** Omit `scope` to get all scopes of the client, or run `authrealm client update CLIENT_ID --scope "…"`. */
  invalid_scope: 400,
} as const satisfies Record<string, keyof typeof TITLES>;

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
