import { expect } from 'bun:test';
import { fetchWithRetry } from '../../support/retry.ts';

/** Requests of client programs that are not on npm, as data: what each sends, and what it reads of the answers. */

export interface RecordedRequest {
  /** Method and path. `{name}` stands for a saved value, here and in every text below. */
  readonly send: string;
  /** The member `data` of the JSON body. */
  readonly data?: object;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  /** What the client reads of the answer. */
  readonly reads?: object;
  /** The text of a body that is no JSON object. */
  readonly text?: string;
  /** Values of the answer for the requests after it: name, and path in the body. */
  readonly saves?: Readonly<Record<string, string>>;
}

/** What a user does with a client, and the requests that it sends for that, in order. */
export interface RecordedUse {
  readonly title: string;
  readonly requests: readonly RecordedRequest[];
}

export interface RecordedClient {
  readonly name: string;
  readonly version: string;
  /** The headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly uses: readonly RecordedUse[];
}

type Values = Record<string, string>;

/** Sends a request as the client does: from this process, or from a page in a browser. */
export type Send = (url: string, init: RecordedInit) => Promise<Response>;

/** Plain data. */
interface RecordedInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly redirect: 'manual';
  readonly body?: string;
}

/**
 * Sends the requests of a use in order, and fails at the first answer that the client could not use. The values are those
 * of an installation: `origin`, `clientId`, `secret`, and what earlier uses saved.
 */
export async function replay(
  client: RecordedClient,
  use: RecordedUse,
  values: Values,
  send: Send = fetchWithRetry,
): Promise<void> {
  for (const request of use.requests) {
    const filled = fill(request, values);
    const [method = '', path = ''] = filled.send.split(' ');
    const headers = { ...client.headers, ...authorization(values), ...filled.headers };
    // A client that follows a redirect loses the body of a POST.
    const init = { method, headers, redirect: 'manual', ...bodyOf(filled) } as const;
    const answer = await send(values.origin + path, init);
    const text = await answer.text();
    const body = text.startsWith('{') ? (JSON.parse(text) as object) : undefined;
    const what = `${client.name}: ${use.title}: ${request.send}`;
    expect([what, answer.status, answer.status < 400 ? '' : text]).toEqual([
      what,
      request.status,
      expect.any(String),
    ]);
    for (const [name, place] of Object.entries(request.saves ?? {})) values[name] = valueAt(body, place);
    // The runtime writes matchers into what it compares, so that the values are saved before.
    if (filled.reads) expect([what, body]).toMatchObject([what, filled.reads]);
    if (request.text !== undefined) expect([what, text]).toEqual([what, request.text]);
  }
}

function authorization({ token }: Values): Readonly<Record<string, string>> {
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

function bodyOf({ data, form }: RecordedRequest): Pick<RecordedInit, 'body'> {
  if (form) return { body: new URLSearchParams(form).toString() };
  return data === undefined ? {} : { body: JSON.stringify({ data }) };
}

/** Replaces the names in every text. Matchers and numbers stay as they are. */
function fill<T>(part: T, values: Values): T {
  if (typeof part === 'string')
    return part.replace(/\{(\w+)\}/g, (_, name: string) => savedValue(values, name)) as T;
  if (Array.isArray(part)) return part.map((each) => fill(each, values)) as T;
  if (part === null || typeof part !== 'object' || Object.getPrototypeOf(part) !== Object.prototype)
    return part;
  return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, fill(each, values)])) as T;
}

function savedValue(values: Values, name: string): string {
  const value = values[name];
  if (value === undefined) throw new Error(`no request before this one saved ${name}`);
  return value;
}

function valueAt(body: object | undefined, path: string): string {
  const value = path
    .split('.')
    .reduce<unknown>((part, name) => (part as Readonly<Record<string, unknown>> | undefined)?.[name], body);
  if (typeof value !== 'string') throw new Error(`the answer has no text at ${path}`);
  return value;
}
