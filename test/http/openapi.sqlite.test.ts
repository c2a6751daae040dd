import { describe, expect, test } from 'bun:test';
import { routesOf } from '../../src/app/api/routes.ts';
import { UNLIMITED } from '../../src/http/server/rate_limits.ts';
import { FAULTS } from '../../src/model/fault.ts';
import { membersOf } from '../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfileInfo, RESOURCES } from '../../src/model/resources.ts';
import { type Json, type JsonObject, openSchemaValidator, type Schema } from '../support/json_schema.ts';
import {
  type Media,
  type Operation,
  operationsOf,
  type Parameter,
  type ResponseSpec,
} from '../support/openapi_client.ts';
import { createFixture, oidcPath, passwordPath, startService } from '../support/service.ts';

interface Document {
  readonly openapi: string;
  readonly servers: readonly { url: string }[];
  readonly paths: Record<string, Record<string, { readonly operationId: string }>>;
  readonly components: { readonly schemas: Record<string, Schema> };
}

interface WithBody {
  readonly requestBody: { readonly content: Readonly<Record<string, Media>> };
}

const service = await startService({ offline: 'true' });
const fixture = await createFixture(service.db);
const token = await service.token('profile-infos:read');
const document = (await (await service.get('/openapi.json')).json()) as JsonObject & Document;
const operations = operationsOf(document);

test('the document is OpenAPI 3.1, with the URL of the service and unique operation IDs', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(document.servers).toEqual([{ url: service.url }]);
  const ids = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map((each) => each.operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

test('the schema of a client accepts all realms and a list of realms', async () => {
  const admin = await service.token('admin');
  const client = document.components.schemas['client.record'];
  for (const realms of ['*', new Set([fixture.realm])] as const) {
    const { clientId } = await service.client('users:read', realms);
    const body = (await (await service.get(`/admin/v1/clients/${clientId}`, admin)).json()) as Json;
    expect(openSchemaValidator(document)(client as Schema, body)).toEqual([]);
  }
});

test('every reference in the document can be resolved', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(2);
  for (const [, pointer = ''] of references) {
    const found = pointer
      .split('/')
      .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);
    expect([pointer, typeof found]).toEqual([pointer, 'object']);
  }
});

test('generated clients can express each type in the document', () => {
  const rejected: unknown[] = [];
  const foldedName = (name: string) => name.replaceAll('_', '').toLowerCase();
  JSON.parse(JSON.stringify(document), function (this: unknown, key: string, value: Schema | null) {
    const names = Object.keys(value?.properties ?? {}).map(foldedName);
    const isNullAlone = value?.type === 'null' && !Array.isArray(this);
    const isUnnamedChoice = value?.oneOf?.some(({ type }) => type === 'object');
    if (new Set(names).size < names.length || isNullAlone || isUnnamedChoice) rejected.push([key, value]);
    return value;
  });
  expect(rejected).toEqual([]);
});

test('the document has every route of the service, and no other', () => {
  const deps = {
    ...({} as Parameters<typeof routesOf>[0]),
    limits: UNLIMITED,
    store: service.db.engine.records,
    baseUrl: service.url,
    console: { linkCommand: '', sessions: { providers: [] } as never, clientCredentials: false },
  };
  const served = routesOf(deps).flatMap(({ pattern, answers }) =>
    Object.keys(answers).map((method) => `${method} ${pattern.replace(/:(\w+)/g, '{$1}')}`),
  );
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described.sort()).toEqual(served.sort());
});

/** The two profile infos, whose members are fixed (docs/wire.md#versions). */
const FIXED_SCHEMAS = [
  [
    'user_authentication_oidc_profile_info',
    oidcProfileInfo,
    ['issuer', 'oidc_profile_id', 'subject'],
    oidcPath,
  ],
  [
    'user_authentication_password_profile_info',
    passwordProfileInfo,
    ['password_profile_id', 'username'],
    passwordPath,
  ],
] as const;

describe.each(FIXED_SCHEMAS)('%s', (type, resource, fields, path) => {
  test('the schema of a profile info has exactly the fixed members, all required', () => {
    const shape = document.components.schemas[type] as Schema;
    expectExactly(shape, ['data', 'links']);
    const { data, links } = shape.properties as Record<string, Schema>;
    expectExactly(links, ['self']);
    expectExactly(data, ['id', 'meta', 'type', ...fields]);
    expectExactly(data?.properties?.meta, ['created_at', 'updated_at']);
    for (const field of ['id', ...fields])
      expect([field, data?.properties?.[field]?.type]).toEqual([field, 'string']);
    expect(data?.properties?.type?.const).toBe(type);
  });

  test('a response with a profile info matches its schema, and no variation of it does', async () => {
    const answer = (await (await service.get(path(fixture), token)).json()) as {
      data: JsonObject;
      links: JsonObject;
    };
    const schema = document.components.schemas[type] as Schema;
    const validate = openSchemaValidator(document);
    expect(validate(schema, answer)).toEqual([]);
    const { id: _, ...without } = answer.data;
    for (const other of [
      { ...answer, meta: {} },
      { ...answer, data: { ...answer.data, password: 'x' } },
      { ...answer, data: { ...answer.data, links: {} } },
      { ...answer, links: { ...answer.links, next: null } },
      { ...answer, data: without },
      { ...answer, data: { ...answer.data, type: 'user_authentication_info' } },
      { ...answer, data: { ...answer.data, id: 'x' } },
    ]) {
      expect(validate(schema, other)).not.toEqual([]);
    }
  });

  test('the lookups of a profile info document the scope, the parameters and every status', () => {
    const own = operations.filter(
      ({ path: at, method }) => method === 'get' && at.endsWith(`/${resource.collection}/{id}`),
    );
    expect(own).toHaveLength(resource === passwordProfileInfo ? 2 : 1);
    for (const { path: at, parameters, scopes, responses } of own) {
      const named = [...at.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
      const described = parameters.filter((parameter) => parameter.in === 'path');
      expect(described.map(({ name }) => name)).toEqual(named);
      expect(described.every(({ required }) => required)).toBe(true);
      expect(scopes).toEqual([`${resource.scope}:read`]);
      expect(Object.keys(responses)).toEqual(['200', '304', '401', '403', '404', '429', '500', '503']);
      expect(responses['200']?.content?.['application/json']?.schema.$ref).toBe(
        `#/components/schemas/${type}`,
      );
    }
  });
});

function expectExactly(schema: Schema | undefined, members: readonly string[]): void {
  expect(Object.keys(schema?.properties ?? {}).sort()).toEqual([...members].sort());
  expect([...(schema?.required ?? [])].sort()).toEqual([...members].sort());
  expect(schema?.additionalProperties).toBe(false);
}

const answersOf = ({ responses }: Operation): readonly ResponseSpec[] => Object.values(responses);
const mediaOf = ({ content = {} }: ResponseSpec): readonly Media[] => Object.values(content);

test('every request and response body has an example that matches its schema', () => {
  const validate = openSchemaValidator(document);
  for (const operation of operations) {
    const sent = operation.body ? [operation.body.media] : [];
    for (const media of [...sent, ...answersOf(operation).flatMap(mediaOf)]) {
      const examples = media.examples
        ? Object.values(media.examples).map(({ value }) => value)
        : [media.example];
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) {
        expect([operation.id, validate(media.schema, example as Json)]).toEqual([operation.id, []]);
      }
    }
  }
});

test('the body of an import is JSON lines or CSV, each with an example that the service can read', async () => {
  const path = '/admin/v1/import';
  const { post } = document.paths[path] as unknown as Readonly<Record<'post', WithBody>>;
  const { content } = post.requestBody;
  const { parameters = [] } = operations.find(({ id }) => id === 'import-records') ?? {};
  const map = parameters.find(({ name }) => name === 'map')?.example as string;
  const queries = { 'application/x-ndjson': '', 'text/csv': `?map=${encodeURIComponent(map)}` };
  expect(Object.keys(content)).toEqual(Object.keys(queries));
  const transfer = await service.token('transfer');
  for (const [type, query] of Object.entries(queries)) {
    const file = Buffer.from(content[type]?.example as string);
    const answer = await service.post(path + query, transfer, file, { 'Content-Type': type });
    // The realm of the examples does not exist.
    expect(await answer.text()).toContain(`{"line":${query ? 2 : 1},"reason":"its authentication-realm`);
  }
});

test('every header and parameter has an example that matches its schema', () => {
  const validate = openSchemaValidator(document);
  for (const operation of operations) {
    const headers = answersOf(operation).flatMap((answer) => Object.values(answer.headers ?? {}));
    for (const { schema, example } of [...operation.parameters, ...headers]) {
      expect([operation.id, validate(schema, example as Json)]).toEqual([operation.id, []]);
    }
  }
});

/** The names of all members that a schema lists, at any depth. */
function membersNamed(schema: unknown, into = new Set<string>()): Set<string> {
  if (typeof schema !== 'object' || schema === null) return into;
  const { $ref } = schema as Schema;
  if ($ref) return membersNamed(document.components.schemas[$ref.split('/').at(-1) ?? ''], into);
  for (const name of Object.keys((schema as Schema).properties ?? {})) into.add(name);
  for (const part of Object.values(schema)) membersNamed(part, into);
  return into;
}

/** The names of the secrets that the operation returns only once. */
const shownOnce = ({ responses }: Operation): readonly string[] =>
  Object.values(responses)
    .flatMap(mediaOf)
    .flatMap(({ schema }) =>
      [...JSON.stringify(resolved(schema)).matchAll(/"(\w+)":\{[^{}]*"x-authrealm-shown-once":true/g)].map(
        ([, name]) => name ?? '',
      ),
    );

/** A schema without references at its top. */
const resolved = (schema: Schema): Schema =>
  schema.$ref ? (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] as Schema) : schema;

test('no response has a secret or hidden member, except the operations that create the secret', () => {
  const issuing = operations.filter((operation) => shownOnce(operation).length > 0);
  expect(Object.fromEntries(issuing.map((each) => [each.id, shownOnce(each)]))).toEqual({
    'create-client': ['client_secret'],
    'rotate-client': ['client_secret'],
    'create-webhook': ['secret'],
    'rotate-webhook': ['secret'],
    // It has the code that signs in.
    'create-console-link': ['url'],
    // No secret, but known at the erasure alone.
    'create-erasure': ['files'],
  });
  const shown = operations
    .filter((each) => !issuing.includes(each))
    .flatMap(answersOf)
    .flatMap(mediaOf);
  const names = new Set(shown.flatMap(({ schema }) => [...membersNamed(schema)]));
  expect(names).toContain('username');
  const secrets = RESOURCES.flatMap((resource) => [
    ...Object.keys(resource.inputs ?? {}),
    ...membersOf(resource)
      .filter(({ annotation }) => annotation.secret || annotation.hidden)
      .map(({ name }) => name),
  ]);
  expect(secrets).toContain('client_secret');
  expect(secrets).toContain('password');
  for (const secret of [...secrets, 'secret', 'username_key']) expect(names).not.toContain(secret);
  // Only the feed and its search return revisions.
  const feed = ['list-changes', 'search-changes'];
  const records = operations.filter(({ id }) => !feed.includes(id)).flatMap(answersOf);
  const others = new Set(records.flatMap(mediaOf).flatMap(({ schema }) => [...membersNamed(schema)]));
  expect(others).not.toContain('revision');
});

test('enabled of a user is optional in requests and responses, and marked as an extension', () => {
  const ofUser = 'user_authentication_info';
  for (const name of [ofUser, `${ofUser}.create`, `${ofUser}.update`]) {
    const { data } = (document.components.schemas[name] as Schema).properties as Record<string, Schema>;
    const enabled = { type: 'boolean', 'x-authrealm-extension': true };
    expect([name, data?.properties?.enabled]).toEqual([name, expect.objectContaining(enabled)]);
    expect(data?.required ?? []).not.toContain('enabled');
  }
});

test('no request has a read-only member', () => {
  const sent = operations.flatMap(({ body }) => (body ? [body.media.schema] : []));
  const names = new Set(sent.flatMap((schema) => [...membersNamed(schema)]));
  expect(names).toContain('client_secret');
  for (const name of ['password_hash', 'creation_status', 'created_at', 'preset', 'meta'])
    expect(names).not.toContain(name);
});

test('every documented error status is in the table of faults', () => {
  const statuses = new Set(Object.values(FAULTS).map(({ status }) => String(status)));
  for (const { responses } of operations) {
    for (const status of Object.keys(responses)) expect(status < '400' || statuses.has(status)).toBe(true);
  }
});

test('additions to the compatible API are marked, its own operations are not', () => {
  const isMarked = (each: object): boolean => 'x-authrealm-extension' in each;
  const raw = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]) => ({
      at: `${method.toUpperCase()} ${path}`,
      isExtension: isMarked(each),
    })),
  );
  const extensions = raw.filter(({ isExtension }) => isExtension).map(({ at }) => at);
  // The operations of the compatible API, without a mark (docs/wire.md#versions).
  const plain = raw.filter(({ at }) => !extensions.includes(at)).map(({ at }) => at);
  expect(plain.filter((at) => /^\w+ \/v2\//.test(at))).toHaveLength(43);
  expect(extensions).toContain('POST /v2/authentication-realms');
  expect(extensions).toContain('DELETE /v2/authentication-realms/{id}');
  expect(extensions.filter((at) => at.endsWith('/search'))).toHaveLength(9);
  const parameters: readonly Parameter[] = operations.flatMap((operation) => operation.parameters);
  const names = new Set(parameters.filter(isMarked).map(({ name }) => name));
  expect([...names].sort()).toEqual([
    'Authrealm-Device',
    'Authrealm-End-User-Address',
    'Idempotency-Key',
    'If-Match',
    'If-None-Match',
    'Last-Event-ID',
    'Origin',
    'X-Request-Id',
    'actor',
    'after',
    'event',
    'from',
    'include',
    'kind',
    'limit',
    'page[after]',
    'realm',
    'record',
    'to',
    'user',
  ]);
});
