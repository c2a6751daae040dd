import type { HttpRequest } from '../../openapi/request.ts';

/** The response so far; a stream grows until it ends or is stopped. */
export interface ResponseState {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly text: string;
  /** Milliseconds until the response headers. */
  readonly headMs: number;
  /** Milliseconds until the end of the body; undefined while receiving. */
  readonly wholeMs: number | undefined;
  /** Whether the body was truncated. */
  readonly isCut: boolean;
}

/** Maximum characters of a body. */
const TEXT_MAX = 1_000_000;

/**
 * Sends a request, with the token if the operation requires one. Browsers set `Origin`. Rejects without a
 * response, or if the request is invalid.
 */
export async function send(
  request: HttpRequest,
  token: string | undefined,
  { signal, report }: { readonly signal: AbortSignal; readonly report: (outcome: ResponseState) => void },
): Promise<void> {
  const startedAt = performance.now();
  const since = () => performance.now() - startedAt;
  const { method, url, form, body, isSigned } = request;
  const headers = new Headers({ Accept: 'application/json', ...request.headers });
  if (isSigned && token !== undefined) headers.set('Authorization', `Bearer ${token}`);
  const response = await fetch(url, {
    ...{ method, headers, signal, cache: 'no-store', credentials: 'omit', redirect: 'manual' },
    ...(form.length > 0 ? { body: new URLSearchParams(form.map(([name, value]) => [name, value])) } : {}),
    ...(body === undefined ? {} : { body }),
  });
  const head = {
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers].sort(([one], [other]) => (one < other ? -1 : 1)),
    headMs: since(),
  };
  let text = '';
  const reportText = (wholeMs: number | undefined) =>
    report({ ...head, text: text.slice(0, TEXT_MAX), wholeMs, isCut: text.length > TEXT_MAX });
  reportText(undefined);
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
    text += decoder.decode(read.value, { stream: true });
    if (text.length > TEXT_MAX) await reader?.cancel();
    reportText(undefined);
  }
  text += decoder.decode();
  reportText(since());
}
