/** One error of a response. */
export interface FieldError {
  /** The rule in the words of the service, without the wire name of the member before it. */
  readonly detail: string;
  /** The member of the record that caused it. */
  readonly member: string | undefined;
}

export type ProblemKind =
  | 'ended'
  | 'forbidden'
  | 'absent'
  | 'gone'
  | 'stale'
  | 'refused'
  | 'busy'
  | 'broken'
  | 'lost';

interface ProblemDetails {
  readonly errors?: readonly FieldError[];
  readonly requestId?: string | undefined;
  readonly waitSeconds?: number | undefined;
}

/** A failed request. `message` is a sentence for the user. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly kind: ProblemKind;
  readonly errors: readonly FieldError[];
  /** The request ID in the log of the service. */
  readonly requestId: string | undefined;
  /** Seconds until a retry; undefined if a retry is no remedy. */
  readonly waitSeconds: number | undefined;

  constructor(kind: ProblemKind, message: string, details: ProblemDetails = {}) {
    super(message);
    this.kind = kind;
    this.errors = details.errors ?? [];
    this.requestId = details.requestId;
    this.waitSeconds = details.waitSeconds;
  }
}

/** Any thrown value as a Problem; anything but a Problem is a bug of the page. */
export function toProblem(error: unknown): Problem {
  return error instanceof Problem
    ? error
    : new Problem('broken', `Unexpected error on this page: ${String(error)}`);
}

/** Undefined for a record that does not exist, perhaps because it was deleted meanwhile. */
export async function unlessAbsent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof Problem && error.kind === 'absent') return undefined;
    throw error;
  }
}

const WORDS: Readonly<Record<ProblemKind, string>> = {
  ended: 'Your session has ended.',
  forbidden: 'This session does not have permission to do that.',
  absent: 'Not found, or not visible to this session.',
  gone: 'The position to continue from is no longer available.',
  stale: 'This record was changed by someone else in the meantime.',
  refused: 'The service rejected the request.',
  busy: 'The service is busy.',
  broken: 'The service failed to process the request.',
  lost: 'The service is unreachable. Your change may have been saved: check before you try again.',
};

const KINDS: ReadonlyMap<number, ProblemKind> = new Map([
  [401, 'ended'],
  [403, 'forbidden'],
  [404, 'absent'],
  [410, 'gone'],
  [412, 'stale'],
  [429, 'busy'],
  [503, 'busy'],
]);

const LOST_READ = 'The service is unreachable. Check your network connection.';
/** Default without Retry-After. */
const WAIT_SECONDS = 2;
const WAIT_SECONDS_MAX = 60;

/** No response, or one that is not from the service. */
export function networkProblem(isReadOnly: boolean): Problem {
  return new Problem('lost', isReadOnly ? LOST_READ : WORDS.lost, { waitSeconds: WAIT_SECONDS });
}

/** Without a session: a request can be sent again after the next sign-in. */
export function endedProblem(): Problem {
  return new Problem('ended', WORDS.ended, { waitSeconds: WAIT_SECONDS });
}

/** The Problem of an error response. */
export function problemFromResponse(status: number, headers: Headers, body: unknown): Problem {
  const kind = KINDS.get(status) ?? (status >= 500 ? 'broken' : 'refused');
  const errors = errorsIn(body);
  const isExplained = kind === 'refused' || kind === 'broken';
  const general = isExplained ? errors.find(({ member }) => !member)?.detail : undefined;
  const why = general ?? (status === 413 ? 'A proxy may limit the size of files' : undefined);
  return new Problem(kind, why === undefined ? WORDS[kind] : `${WORDS[kind]} ${why}.`, {
    errors,
    requestId: headers.get('x-request-id') ?? undefined,
    waitSeconds: kind === 'busy' || kind === 'ended' ? waitIn(headers) : undefined,
  });
}

function waitIn(headers: Headers): number {
  const seconds = Number(headers.get('retry-after') ?? WAIT_SECONDS);
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 1), WAIT_SECONDS_MAX) : WAIT_SECONDS;
}

function errorsIn(body: unknown): readonly FieldError[] {
  const errors = (body as { errors?: unknown } | null | undefined)?.errors;
  if (!Array.isArray(errors)) return [];
  return errors.map((each: { title?: unknown; detail?: unknown; source?: { pointer?: unknown } }) => ({
    detail: ruleIn(String(each.detail ?? each.title ?? ''), each.source?.pointer),
    member: memberIn(each.source?.pointer),
  }));
}

/** `data.subject: must not be blank` at `/data/subject` is `must not be blank`. */
function ruleIn(detail: string, pointer: unknown): string {
  const name = typeof pointer === 'string' ? pointer.slice(1).replaceAll('/', '.') : '';
  const rule = name !== '' && detail.startsWith(`${name}: `) ? detail.slice(name.length + 2) : detail;
  return rule.replace(/\.$/, '');
}

/** `/data/redirect_uris/0`, of a batch `/requests/1/body/data/redirect_uris/0`, is about `redirect_uris`. */
function memberIn(pointer: unknown): string | undefined {
  if (typeof pointer !== 'string') return undefined;
  const [, , ...steps] = pointer.replace(/^\/requests\/\d+(\/body)?/, '').split('/');
  return steps.find((step) => step !== 'meta' && step !== 'relationships' && step !== 'data');
}
