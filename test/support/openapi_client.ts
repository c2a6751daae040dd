import {
  isObject,
  type Json,
  type JsonObject,
  openSchemaValidator,
  resolveReference,
  type Schema,
} from './json_schema.ts';

/** Reads an OpenAPI document, sends what it describes, and holds every answer to it. It knows nothing else of us. */

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
  readonly parameters: readonly Parameter[];
  /** The one media type it reads, and what of it; its schema is no reference. */
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

type Raw<T> = T | { readonly $ref: string };

/** Every operation of a document, its references followed. */
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
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Raw<Parameter>[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Raw<ResponseSpec>>>;
}

/** The status of an operation that went well; of one that is not offered there is none but 501. */
export function successOf({ responses }: Operation): number {
  return (
    Object.keys(responses)
      .map(Number)
      .find((status) => status < 400) ?? 501
  );
}

/** What every HTTP server writes (RFC 9110); OpenAPI 3.1 says that Content-Type is none of the headers it lists. */
const OF_HTTP: ReadonlySet<string> = new Set(['date', 'content-length', 'content-type', 'transfer-encoding']);

/** What of an answer is not as it is documented, in words. An answer to HEAD has no body. */
export type ResponseCheck = (
  answer: ResponseSpec,
  received: OperationResponse,
  isHead?: boolean,
) => readonly string[];

/** Holds answers to the schemas of a document. What is documented as another type than JSON may hold anything. */
export function openResponseCheck(document: JsonObject): ResponseCheck {
  const judge = openSchemaValidator(document);

  function headersBroken({ headers = {} }: ResponseSpec, received: OperationResponse): readonly string[] {
    const documented = new Map(Object.entries(headers).map(([name, header]) => [name.toLowerCase(), header]));
    const strange = [...received.headers.keys()].filter(
      (name) => !OF_HTTP.has(name) && !documented.has(name),
    );
    const wrong = [...documented].flatMap(([name, { required, schema }]) => {
      const value = received.headers.get(name);
      if (value === null) return required ? [`header ${name} is missing`] : [];
      return judge(schema, value, `header ${name}`);
    });
    return [...strange.map((name) => `header ${name} is not documented`), ...wrong];
  }

  function bodyBroken(
    { content = {} }: ResponseSpec,
    received: OperationResponse,
    isHead: boolean,
  ): readonly string[] {
    const types = Object.keys(content);
    const type = received.headers.get('content-type') ?? '';
    if (types.length > 0 && !types.includes(type)) return [`is no ${types.join(' or ')}`];
    if (types.length === 0 || isHead) return received.text === '' ? [] : ['has a body'];
    if (!/\bjson$/.test(type)) return [];
    if (received.body === undefined) return ['has no body'];
    return judge(content[type]?.schema ?? {}, received.body, 'body');
  }

  return (answer, received, isHead = false) => [
    ...headersBroken(answer, received),
    ...bodyBroken(answer, received, isHead),
  ];
}

/** The answer that is a component of this name. */
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

/** Sends requests of operations. Each answer is held to the document before it is handed on. */
export interface OperationClient {
  send(operation: Operation, sent?: OperationRequest): Promise<OperationResponse>;
  /** The same as HEAD: what a GET answers, without its body. */
  head(operation: Operation, sent?: OperationRequest): Promise<OperationResponse>;
  /** What is no operation: held to a component of this name. */
  sendUndocumented(method: string, path: string, component: string): Promise<OperationResponse>;
  /** `<operation id> <status>` of everything that was answered. */
  readonly covered: ReadonlySet<string>;
}

export function openOperationClient(document: JsonObject): OperationClient {
  const [server] = document.servers as unknown as readonly { readonly url: string }[];
  const brokenBy = openResponseCheck(document);
  const seen = new Set<string>();

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
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      body: text === '' ? undefined : (JSON.parse(text) as Json),
    };
  }

  function hold(
    what: string,
    answer: ResponseSpec,
    received: OperationResponse,
    isHead = false,
  ): OperationResponse {
    const broken = brokenBy(answer, received, isHead);
    if (broken.length > 0) throw new Error(`${what}: ${broken.join('; ')}\n${received.text}`);
    return received;
  }

  async function ask(
    method: string,
    operation: Operation,
    sent: OperationRequest,
  ): Promise<OperationResponse> {
    const received = await request(method, operation, sent);
    const what = `${operation.id} ${received.status}`;
    const answer = operation.responses[String(received.status)];
    if (!answer) throw new Error(`${what} is not documented\n${received.text}`);
    seen.add(what);
    return hold(what, answer, received, method === 'HEAD');
  }

  return {
    covered: seen,
    send: (operation, sent = {}) => ask(operation.method.toUpperCase(), operation, sent),
    head: (operation, sent = {}) => ask('HEAD', operation, sent),
    async sendUndocumented(method, path, component) {
      const received = await request(method, { path, body: undefined }, {});
      return hold(`${method} ${path}`, responseComponent(document, component), received, method === 'HEAD');
    },
  };
}
