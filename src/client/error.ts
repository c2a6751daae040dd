/** One error of an answer, in the service's own words. */
export interface Complaint {
  readonly status: string;
  readonly title: string;
  readonly detail?: string;
  /** What it is about: a JSON pointer into the body, or a parameter of the query. */
  readonly source?: { readonly pointer?: string; readonly parameter?: string };
}

interface Circumstances {
  /** Undefined where no answer came. */
  readonly status?: number | undefined;
  readonly errors?: readonly Complaint[];
  readonly requestId?: string | undefined;
  readonly isUncertain?: boolean;
}

/**
 * A request that was not answered as it should be. Its message holds the method, the path and the service's words:
 * never a secret, a token, a query or a body.
 */
export class AuthrealmError extends Error {
  override readonly name = 'AuthrealmError';
  /** The status of the answer; undefined where none came. */
  readonly status: number | undefined;
  /** What the service said; empty where it said nothing that this library can read. */
  readonly errors: readonly Complaint[];
  /** By this the service's log names the request. */
  readonly requestId: string | undefined;
  /** An attempt of this request was lost on its way, and may have been carried out. */
  readonly isUncertain: boolean;

  constructor(message: string, { status, errors = [], requestId, isUncertain = false }: Circumstances = {}) {
    super(message);
    this.status = status;
    this.errors = errors;
    this.requestId = requestId;
    this.isUncertain = isUncertain;
  }
}

/** Whether the record is no longer the one that `ifMatch` names. */
export function isStale(error: unknown): error is AuthrealmError & { readonly status: 412 } {
  return error instanceof AuthrealmError && error.status === 412;
}

/** Whether there is no such record, as far as this caller may know. */
export function isAbsent(error: unknown): error is AuthrealmError & { readonly status: 404 } {
  return error instanceof AuthrealmError && error.status === 404;
}

const COMPLAINTS_MAX = 20;
const WORDS_MAX = 300;

/** The errors in the body of an answer (contract 3.5); what else a body may be is none. */
export function readComplaints(body: unknown): readonly Complaint[] {
  const errors = (body as { errors?: unknown } | null | undefined)?.errors;
  if (!Array.isArray(errors)) return [];
  return errors.slice(0, COMPLAINTS_MAX).flatMap((each) => readComplaint(each));
}

function readComplaint(raw: unknown): readonly Complaint[] {
  if (typeof raw !== 'object' || raw === null) return [];
  const { status, title, detail, source } = raw as Record<string, unknown>;
  if (typeof title !== 'string') return [];
  return [
    {
      status: String(status),
      title: title.slice(0, WORDS_MAX),
      ...(typeof detail === 'string' ? { detail: detail.slice(0, WORDS_MAX) } : {}),
      ...(typeof source === 'object' && source !== null ? { source } : {}),
    },
  ];
}

/** What the service said, in one line. */
export function wordsOf(errors: readonly Complaint[]): string {
  return errors.map(({ title, detail }) => (detail ? `${title}: ${detail}` : title)).join('; ');
}
