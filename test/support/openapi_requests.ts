import { isObject, type Json, type JsonObject, resolveReference, type Schema } from './json_schema.ts';
import { linksOf } from './openapi_bodies.ts';
import {
  exampleOf,
  type Operation,
  type OperationClient,
  type OperationRequest,
  type OperationResponse,
  type Parameter,
} from './openapi_client.ts';

/** Creates records from the examples of an OpenAPI document, and valid requests of its operations to them. */

export interface ValidRequests {
  /** A valid request, new at every call: a create makes another record. */
  validRequest(operation: Operation): Promise<OperationRequest>;
  /** A token with every scope except these. */
  tokenWithout(scopes: readonly string[]): Promise<string>;
  /** The text of an example with the values of existing records in place of those of the examples. */
  withRecordValues(text: string): string;
}

interface ValidRequestsOptions {
  readonly document: JsonObject;
  readonly operations: readonly Operation[];
  readonly caller: OperationClient;
  /** A client that holds these scopes. */
  readonly credentials: (scope: string) => Promise<{ readonly clientId: string; readonly secret: string }>;
  /** A one-time code that signs in to the console, and the token of a session. Without it such requests are rejected. */
  readonly console?: { code(): Promise<string>; token(): Promise<string> };
  /** A body that signs in an account member. Without it such requests are rejected. */
  readonly signIn?: Json;
}

interface ExampleRecord {
  readonly creator: Operation;
  readonly id: string;
  /** Its URLs: Location and links. */
  readonly addresses: readonly string[];
  readonly body: JsonObject;
}

export async function openValidRequests({
  document,
  operations,
  caller,
  credentials,
  console,
  signIn,
}: ValidRequestsOptions): Promise<ValidRequests> {
  const [server] = document.servers as unknown as readonly { readonly url: string }[];
  const creators = operations.filter(createsRecord);
  const tokens = new Map<string, Promise<string>>();
  const base = new Map<Operation, ExampleRecord>();
  const spare = new Map<Operation, ExampleRecord>();
  let count = 0;

  /** Gets a token from the documented token endpoint. */
  const grant = async (scope: string): Promise<string> => grantBy(await form(scope));

  async function grantBy(sent: string): Promise<string> {
    const at = operations.find(
      ({ path, body }) => body?.type.endsWith('form-urlencoded') && tokenUrl() === path,
    );
    if (!at) throw new Error('no token endpoint is documented');
    const { body } = await caller.send(at, { body: sent });
    return (body as { access_token: string }).access_token;
  }

  function tokenUrl(): string {
    const { flows } = resolveReference<{ flows: { clientCredentials: { tokenUrl: string } } }>(
      document,
      '#/components/securitySchemes/client_credentials',
    );
    return flows.clientCredentials.tokenUrl.slice(server?.url.length);
  }

  async function form(scope: string): Promise<string> {
    const { clientId, secret } = await credentials(scope);
    const sent = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
    return new URLSearchParams(sent).toString();
  }

  /** The credentials of a client and one of its tokens, for introspection and revocation. */
  async function formOfToken(scope: string): Promise<string> {
    const sent = await form(scope);
    return `${sent}&token=${await grantBy(sent)}`;
  }

  function token(scopes: readonly string[]): Promise<string> {
    const scope = scopes.join(' ');
    const known = tokens.get(scope) ?? grant(scope);
    tokens.set(scope, known);
    return known;
  }

  /** Creates a record from its example. */
  async function make(creator: Operation): Promise<ExampleRecord> {
    const sent = await right(creator);
    const received = await caller.send(creator, sent);
    if (received.status !== 201) throw new Error(`${creator.id}: its example is answered ${received.text}`);
    return exampleRecordOf(creator, received);
  }

  function exampleRecordOf(creator: Operation, { headers, body }: OperationResponse): ExampleRecord {
    const answer = body as { data: { id: string }; links: Record<string, string> } & JsonObject;
    const location = headers.get('location') ?? '';
    return {
      creator,
      id: answer.data.id,
      addresses: [location, ...Object.values(answer.links)],
      body: answer,
    };
  }

  /**
   * The parameters of a path: from a URL of a response, else from parent records, or from the record that the schema refers
   * to.
   */
  function parametersOf(path: string, from: Iterable<ExampleRecord>): Record<string, string> | undefined {
    for (const made of from) {
      for (const address of made.addresses) {
        const found = matchPath(path, address.slice(server?.url.length));
        if (found) return found;
      }
    }
    const names = [...path.matchAll(/\/\{(\w+)\}/g)];
    const ids = names.map(({ index, 1: name = '' }) => {
      const above = [...base.values()].find(({ creator }) => creator.path === path.slice(0, index));
      return [name, above?.id ?? readAs(path, name)] as const;
    });
    return ids.every(([, id]) => id !== undefined)
      ? Object.fromEntries(ids as [string, string][])
      : undefined;
  }

  /** The ID of the record that a parameter refers to. */
  function readAs(path: string, name: string): string | undefined {
    const own = operations.find((each) => each.path === path)?.parameters;
    const schema = own?.find((each) => each.in === 'path' && each.name === name)?.schema;
    return schema?.['x-authrealm-reads'] === undefined ? undefined : referred(schema);
  }

  /** The record whose URL matches this path. */
  const at = (path: string): ExampleRecord | undefined =>
    [...base.values()].find((made) => parametersOf(path, [made]) && path.endsWith('}') && isAt(path, made));
  const isAt = (path: string, { addresses }: ExampleRecord): boolean =>
    addresses.some((address) => matchPath(path, address.slice(server?.url.length)));

  /** Records that a request deletes or ends: created for each request. */
  const ending = new Map<string, string>();

  async function createEnding(schema: Schema): Promise<void> {
    for (const each of referencesOf(schema).filter((member) => member['x-authrealm-ends'])) {
      const owner = at(operations.find(({ id }) => id === each['x-authrealm-reads'])?.path ?? '');
      if (owner) ending.set(each['x-authrealm-reads'] ?? '', (await make(owner.creator)).id);
    }
  }

  /** The ID for a member that refers to another record. */
  function referred(schema: Schema): string | undefined {
    if (schema['x-authrealm-ends']) return ending.get(schema['x-authrealm-reads'] ?? '');
    const read = operations.find(({ id }) => id === schema['x-authrealm-reads']);
    return read && at(read.path)?.id;
  }

  const isCreatable = ({ path, body }: Operation): boolean =>
    parametersOf(path, []) !== undefined &&
    referencesOf(body?.media.schema ?? {}).every(
      ({ 'x-authrealm-ends': _, ...schema }) => referred(schema) !== undefined,
    );

  /** The example with unique names, so that it conflicts with no record. */
  function varied(schema: Schema, value: Json): Json {
    const { anyOf, properties, type } = schema;
    const own = referred(schema);
    if (own !== undefined) return own;
    if (anyOf) return varied(anyOf.find((each) => each.type !== 'null') ?? {}, value);
    if (isObject(value) && properties) {
      const members = Object.entries(value).map(([name, each]) => [
        name,
        varied(properties[name] ?? {}, each),
      ]);
      return Object.fromEntries(members);
    }
    const isFree =
      type === 'string' && !['format', 'enum', 'const', 'pattern'].some((each) => each in schema);
    return isFree ? `${value}${count}` : value;
  }

  async function right(operation: Operation): Promise<OperationRequest> {
    const { path, scopes, furtherScopes, parameters, body, method } = operation;
    const owner = at(path);
    const from = owner ? [await targetOf(method, owner)] : [];
    const required = parameters.filter((each) => each.required);
    const headers = required.filter((each) => each.in === 'header');
    const query = required
      .filter((each) => each.in === 'query')
      .map(({ name, example }) => `${encodeURIComponent(name)}=${encodeURIComponent(told(String(example)))}`);
    count += 1;
    return {
      path: parametersOf(path, [...from, ...base.values()]) ?? (await linkedParameters(path)) ?? {},
      query: query.join('&'),
      ...(headers.length > 0 ? { headers: exampleHeaders(headers) } : {}),
      ...(scopes
        ? {
            token:
              (await (scopes.length > 0 ? token([...scopes, ...furtherScopes]) : console?.token())) ?? 'none',
          }
        : {}),
      ...(body ? { body: await bodyOf(operation) } : {}),
    };
  }

  /** The parameter of a record that no operation creates: that of a link in the answer of its collection, if it has one. */
  async function linkedParameters(path: string): Promise<Record<string, string> | undefined> {
    const [, item = '', above, name = ''] = /^((.+)\/\{(\w+)\})(?:\/[\w-]+)?$/.exec(path) ?? [];
    const collection = operations.find((each) => each.method === 'get' && each.path === above);
    if (!collection) return undefined;
    const { body } = await caller.send(collection, await right(collection));
    const found = linksOf(body ?? null).map((link) => matchPath(item, link.slice(server?.url.length)));
    return found.find(Boolean) ?? { [name]: crypto.randomUUID() };
  }

  /** A DELETE gets a record created for it, a PUT one that no other record depends on. */
  async function targetOf(method: Operation['method'], owner: ExampleRecord): Promise<ExampleRecord> {
    if (method === 'delete') return make(owner.creator);
    if (method !== 'put') return owner;
    const made = spare.get(owner.creator) ?? (await make(owner.creator));
    spare.set(owner.creator, made);
    return made;
  }

  /** The body of a request that signs somebody in. */
  async function givenBody(example: string): Promise<Json | undefined> {
    if (console && example.includes('"grant":"link"')) {
      return { data: { grant: 'link', code: await console.code() } };
    }
    return example.includes('"authentication_mechanism"') ? signIn : undefined;
  }

  async function bodyOf({ body, method, responses }: Operation): Promise<Json> {
    const media = body?.media ?? { schema: {} };
    const { schema } = media;
    const example = exampleOf(media) ?? null;
    const isOfToken = schema.required?.includes('token') === true;
    if (body?.type === 'application/x-ndjson') return example;
    if (body?.type !== 'application/json') return (isOfToken ? formOfToken : form)('oidc-profile-infos:read');
    const given = await givenBody(JSON.stringify(example));
    if (given) return given;
    await createEnding(schema);
    const isNaming = referencesOf(schema).length > 0;
    if ('201' in responses || method === 'put' || isNaming) return varied(schema, example);
    return JSON.parse(told(JSON.stringify(example)));
  }

  /** Replaces values of the examples by those of the existing records. */
  function told(text: string): string {
    let result = text;
    for (const { creator, body } of base.values()) {
      const example = exampleOf(creator.responses['201']?.content?.['application/json'] ?? { schema: {} });
      if (isObject(example)) result = withValuesOf(body, example, result);
    }
    return result;
  }

  while (base.size < creators.length) {
    const next = creators.filter((each) => !base.has(each) && isCreatable(each));
    if (next.length === 0) throw new Error('some records cannot be created from the examples');
    for (const creator of next) base.set(creator, await make(creator));
  }
  const all = operations.flatMap(({ scopes = [] }) => scopes);
  return {
    validRequest: right,
    withRecordValues: told,
    tokenWithout: (scopes) => token([...new Set(all)].filter((scope) => !scopes.includes(scope))),
  };
}

/** Whether an operation creates a record, which its answer names. */
export function createsRecord({ responses }: Operation): boolean {
  return responses['201']?.headers?.Location !== undefined;
}

/** Replaces values of an example record in filters, and its ID in paths. */
function withValuesOf(body: JsonObject, example: JsonObject, text: string): string {
  let result = text;
  for (const [old, now] of leavesOf(example.data ?? null, body.data ?? null)) {
    if (result.includes(`,${old})`)) result = result.replace(`,${old})`, `,${now})`);
    if (old === (example.data as JsonObject).id) result = result.replaceAll(`/${old}`, `/${now}`);
  }
  return result;
}

/** Headers with the values of their examples. */
function exampleHeaders(parameters: readonly Parameter[]): Record<string, string> {
  return Object.fromEntries(parameters.map(({ name, example }) => [name, String(example)]));
}

/** The parameters of a path, by its template. */
export function matchPath(template: string, path: string): Record<string, string> | undefined {
  const pattern = template.replace(/[.]/g, '\\.').replace(/\{(\w+)\}/g, '(?<$1>[^/?]+)');
  const match = new RegExp(`^${pattern}(?:\\?.*)?$`).exec(path);
  return match ? { ...match.groups } : undefined;
}

/** Values of a query parameter that a schema allows, and others. Unknown values of a set are ignored. */
export function parameterValues(schema: Schema): {
  readonly right: readonly Json[];
  readonly wrong: readonly Json[];
} {
  const { minimum, maximum = 0, minLength, maxLength, enum: choices = [], items } = schema;
  if (items?.enum) return { right: [...items.enum, items.enum.join(), 'none('], wrong: [] };
  // A text with a bound is a filter, which has a grammar.
  if (minLength !== undefined && maxLength === undefined) return { right: ['none('], wrong: [''] };
  if (minimum === undefined) return { right: choices, wrong: ['none('] };
  return { right: [minimum, maximum], wrong: [minimum - 1, maximum + 1, 'one', '1.5', ''] };
}

/** The members of a schema that refer to other records. */
function referencesOf(schema: Schema): readonly Schema[] {
  const below = Object.values(schema.properties ?? {}).flatMap(referencesOf);
  return schema['x-authrealm-reads'] === undefined ? below : [schema, ...below];
}

/** The pairs of strings at the same places of two values. */
function leavesOf(left: Json, right: Json): readonly (readonly [string, string])[] {
  if (typeof left === 'string' && typeof right === 'string') return [[left, right]];
  if (!isObject(left) || !isObject(right)) return [];
  return Object.keys(left).flatMap((name) => leavesOf(left[name] ?? null, right[name] ?? null));
}
