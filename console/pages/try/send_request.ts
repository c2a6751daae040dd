import type { HttpRequest } from '../../openapi/request.ts';

/** What came of a request, so far: a stream grows until it is over or stopped. */
export interface ResponseState {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly text: string;
  /** Milliseconds until the head of the answer was there. */
  readonly headMs: number;
  /** Until all of it was; undefined while more may come. */
  readonly wholeMs: number | undefined;
  /** There was more than a page can show. */
  readonly isCut: boolean;
}

/** Characters of a body that are kept. */
const TEXT_MAX = 1_000_000;

/**
 * Sends a request as it stands, with the token where the operation wants one. `Origin` is the browser's to say. Rejects
 * where no answer came, or what is to be sent cannot be.
 */
export async function send(
  request: HttpRequest,
  token: string | undefined,
  { signal, report }: { readonly signal: AbortSignal; readonly report: (outcome: ResponseState) => void },
): Promise<void> {
  const begun = performance.now();
  const since = () => performance.now() - begun;
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
