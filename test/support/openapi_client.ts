import {
  isObject,
  type Json,
  type JsonObject,
  openSchemaValidator,
  resolveReference,
  type Schema,
} from './json_schema.ts';
import { isOverloaded, sendWithRetry } from './retry.ts';

/** A client that knows only the OpenAPI document: it sends documented requests and validates every response. */

export type Method = 'get' | 'post' | 'put' | 'delete';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: Json;
}

interface Header {
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: Json;
}

export interface Media {
  readonly schema: Schema;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>;
}

export interface ResponseSpec {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, Media>>;
}

export interface Operation {
  readonly id: string;
  readonly path: string;
  readonly method: Method;
  readonly scopes: readonly string[] | undefined;
  /** Scopes that only some of its requests need. */
  readonly furtherScopes: readonly string[];
  readonly parameters: readonly Parameter[];
  /** The only media type of the request body; its schema is resolved. */
  readonly body: { readonly type: string; readonly media: Media } | undefined;
  readonly responses: Readonly<Record<string, ResponseSpec>>;
}

export interface OperationRequest {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Json;
  readonly token?: string | undefined;
}

export interface OperationResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Json | undefined;
}

/** The example of a body, or the first of several. */
export function exampleOf({ example, examples = {} }: Media): Json | undefined {
  return example ?? Object.values(examples)[0]?.value;
}

type Raw<T> = T | { readonly $ref: string };

/** Every operation of a document, with its references resolved. */
export function operationsOf(document: JsonObject): readonly Operation[] {
  const read = <T>(raw: Raw<T>): T =>
    isObject(raw as Json) && '$ref' in (raw as object)
      ? resolveReference<T>(document, (raw as { $ref: string }).$ref)
      : (raw as T);
  const all = <T>(raw: Readonly<Record<string, Raw<T>>> = {}): Record<string, T> =>
    Object.fromEntries(Object.entries(raw).map(([name, each]) => [name, read(each)]));
  const answer = (raw: Raw<ResponseSpec>): ResponseSpec => {
    const { headers, ...rest } = read(raw);
    return { ...rest, headers: all(headers) };
  };
  const paths = document.paths as unknown as Record<string, Record<Method, RawOperation>>;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]): Operation => {
      const [media] = Object.entries(raw.requestBody?.content ?? {});
      return {
        id: raw.operationId,
        path,
        method: method as Method,
        scopes:
          raw.security.length > 0 ? raw.security.flatMap((each) => Object.values(each).flat()) : undefined,
        furtherScopes: raw['x-authrealm-further-scopes'] ?? [],
        parameters: (raw.parameters ?? []).map((each) => read(each)),
        body: media && { type: media[0], media: { ...media[1], schema: read(media[1].schema) } },
        responses: Object.fromEntries(
          Object.entries(raw.responses).map(([status, each]) => [status, answer(each)]),
        ),
      };
    }),
  );
}

interface RawOperation {
  readonly operationId: string;
  readonly 'x-authrealm-further-scopes'?: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Raw<Parameter>[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Raw<ResponseSpec>>>;
}

/**
 * The status of a valid request. Browsers sign in only to a realm that has redirect URIs, which no example is: these operations are
 * answered as for any other realm, but for the one that only redirects. An ID token is checked by the keys of its provider, which no
 * service reads that is offline.
 */
export function successOf({ path, method, responses }: Operation): number {
  if (isForBrowsers({ path }) && method === 'get') return path.startsWith('/oidc-idp/stores/') ? 404 : 400;
  if (path.endsWith('/oidc-profiles/{id}/check')) return 503;
  return (
    Object.keys(responses)
      .map(Number)
      .find((status) => status < 400) ?? Number.NaN
  );
}

/** Whether browsers are sent to an operation. Their suites are those of sign-in through a provider. */
export function isForBrowsers({ path }: Pick<Operation, 'path'>): boolean {
  return path.startsWith('/oidc-idp/');
}

/** Headers of every HTTP server (RFC 9110) that a document does not list. */
const STANDARD_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'date',
  'content-length',
  'content-type',
  'transfer-encoding',
]);

/** The differences between a response and its documentation. A response to HEAD has no body. */
export type ResponseCheck = (
  answer: ResponseSpec,
  received: OperationResponse,
  isHead?: boolean,
) => readonly string[];

/** Validates responses by the schemas of a document. Bodies of other types than JSON are not validated. */
export function openResponseCheck(document: JsonObject): ResponseCheck {
  const validate = openSchemaValidator(document);

  function headerErrors({ headers = {} }: ResponseSpec, received: OperationResponse): readonly string[] {
    const documented = new Map(Object.entries(headers).map(([name, header]) => [name.toLowerCase(), header]));
    const undocumented = [...received.headers.keys()].filter(
      (name) => !STANDARD_HEADERS.has(name) && !documented.has(name),
    );
    const wrong = [...documented].flatMap(([name, { required, schema }]) => {
      const value = received.headers.get(name);
      if (value === null) return required ? [`header ${name} is missing`] : [];
      return validate(schema, value, `header ${name}`);
    });
    return [...undocumented.map((name) => `header ${name} is not documented`), ...wrong];
  }

  function bodyErrors(
    { content = {} }: ResponseSpec,
    received: OperationResponse,
    isHead: boolean,
  ): readonly string[] {
    const types = Object.keys(content);
    const type = received.headers.get('content-type') ?? '';
    if (types.length > 0 && !types.includes(type)) return [`is not ${types.join(' or ')}`];
    if (types.length === 0 || isHead) return received.text === '' ? [] : ['has a body'];
    if (!/\bjson$/.test(type)) return [];
    if (received.body === undefined) return ['has no body'];
    return validate(content[type]?.schema ?? {}, received.body, 'body');
  }

  return (answer, received, isHead = false) => [
    ...headerErrors(answer, received),
    ...bodyErrors(answer, received, isHead),
  ];
}

/** The response component of this name. */
export function responseComponent(document: JsonObject, component: string): ResponseSpec {
  const raw = resolveReference<{ headers: Record<string, Raw<Header>> } & ResponseSpec>(
    document,
    `#/components/responses/${component}`,
  );
  const headers = Object.entries(raw.headers).map(([name, each]) => [
    name,
    '$ref' in each ? resolveReference<Header>(document, each.$ref) : each,
  ]);
  return { ...raw, headers: Object.fromEntries(headers) };
}

/** Sends requests of operations, those answered as overloaded again, and validates each response. */
export interface OperationClient {
  send(operation: Operation, sent?: OperationRequest): Promise<OperationResponse>;
  /** Sends a GET operation as HEAD. */
  head(operation: Operation, sent?: OperationRequest): Promise<OperationResponse>;
  /** Sends an undocumented request, and validates the response by the component of this name. */
  sendUndocumented(
    method: string,
    path: string,
    component: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<OperationResponse>;
  /** `<operation id> <status>` of every response. */
  readonly covered: ReadonlySet<string>;
}

/** The JSON in a response; undefined without a body, and for other types. */
function bodyOf(headers: Headers, text: string): Json | undefined {
  const isJson = /\bjson$/.test(headers.get('content-type') ?? '');
  return isJson && text !== '' ? (JSON.parse(text) as Json) : undefined;
}

export function openOperationClient(document: JsonObject): OperationClient {
  const [server] = document.servers as unknown as readonly { readonly url: string }[];
  const checkResponse = openResponseCheck(document);
  const covered = new Set<string>();

  async function request(
    method: string,
    operation: Pick<Operation, 'path' | 'body'>,
    sent: OperationRequest,
  ): Promise<OperationResponse> {
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = sent.path?.[name];
      if (value === undefined) throw new Error(`${operation.path} needs ${name}`);
      return encodeURIComponent(value);
    });
    const headers = {
      ...(sent.token === undefined ? {} : { Authorization: `Bearer ${sent.token}` }),
      ...(sent.body === undefined ? {} : { 'Content-Type': operation.body?.type ?? 'application/json' }),
      ...sent.headers,
    };
    const body =
      sent.body === undefined || typeof sent.body === 'string' ? sent.body : JSON.stringify(sent.body);
    const answer = await fetch(`${server?.url}${path}${sent.query ? `?${sent.query}` : ''}`, {
      method,
      headers,
      redirect: 'manual',
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, body: bodyOf(answer.headers, text) };
  }

  function validated(
    what: string,
    answer: ResponseSpec,
    received: OperationResponse,
    isHead = false,
  ): OperationResponse {
    const errors = checkResponse(answer, received, isHead);
    if (errors.length > 0) throw new Error(`${what}: ${errors.join('; ')}\n${received.text}`);
    return received;
  }

  async function sendOperation(
    method: string,
    operation: Operation,
    sent: OperationRequest,
  ): Promise<OperationResponse> {
    const received = await sendWithRetry(() => request(method, operation, sent), isOverloaded);
    const what = `${operation.id} ${received.status}`;
    const answer = operation.responses[String(received.status)];
    if (!answer) throw new Error(`${what} is not documented\n${received.text}`);
    covered.add(what);
    return validated(what, answer, received, method === 'HEAD');
  }

  return {
    covered,
    send: (operation, sent = {}) => sendOperation(operation.method.toUpperCase(), operation, sent),
    head: (operation, sent = {}) => sendOperation('HEAD', operation, sent),
    async sendUndocumented(method, path, component, headers = {}) {
      const received = await request(method, { path, body: undefined }, { headers });
      return validated(
        `${method} ${path}`,
        responseComponent(document, component),
        received,
        method === 'HEAD',
      );
    },
  };
}
