import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FAULTS } from '../src/domain/fault.ts';
import { oidcProfileInfo, passwordProfileInfo } from '../src/domain/resources.ts';
import { recordSchema } from '../src/http/openapi.ts';
import { routesOf } from '../src/http/routes.ts';
import { oidcPath, type Planted, passwordPath, plant, type Service, startService } from './kit.ts';

type Schema = {
  readonly type?: string;
  readonly const?: string;
  readonly properties?: Record<string, Schema>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
};
interface Operation {
  readonly operationId: string;
  readonly security: readonly Record<string, string[]>[];
  readonly parameters?: readonly { name: string; in: string; required?: boolean }[];
  readonly responses: Record<string, { content?: Record<string, { schema: { $ref?: string } }> }>;
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly servers: readonly { url: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, Schema> };
}

let service: Service;
let planted: Planted;
let document: Document;
let token: string;

beforeAll(async () => {
  service = await startService();
  planted = await plant(service.vault);
  token = await service.token('profile-infos:read');
  document = (await (await service.get('/openapi.json')).json()) as Document;
});
afterAll(() => service.stop());

test('it is OpenAPI 3.1 of this service', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(document.servers).toEqual([{ url: service.url }]);
  const ids = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map((each) => each.operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

test('every reference in it leads somewhere', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(2);
  for (const [, pointer = ''] of references) {
    const found = pointer
      .split('/')
      .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);
    expect([pointer, typeof found]).toEqual([pointer, 'object']);
  }
});

test('it has every route of the route table, and no other', () => {
  const house = { ...({} as Parameters<typeof routesOf>[0]), baseUrl: service.url, version: '0' };
  const served = routesOf(house).flatMap(({ pattern, answers }) =>
    Object.keys(answers).map((method) => `${method} ${pattern.replace(/:(\w+)/g, '{$1}')}`),
  );
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described.sort()).toEqual(served.sort());
});

/** The tables of seed 2.1 and 2.2, member by member. */
const SEED = [
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

describe.each(SEED)('%s', (type, resource, fields, path) => {
  test('its schema has exactly the members of the seed, all of them required and none beside them', () => {
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

  test('a real answer is what the schema says, and nothing more would be', async () => {
    const answer = (await (await service.get(path(planted), token)).json()) as {
      data: object;
      links: object;
    };
    const schema = recordSchema(resource);
    expect(schema.parse(answer)).toEqual(answer);
    for (const other of [
      { ...answer, meta: {} },
      { ...answer, data: { ...answer.data, password: 'x' } },
      { ...answer, data: { ...answer.data, links: {} } },
      { ...answer, links: { ...answer.links, next: null } },
      { ...answer, data: { ...answer.data, id: undefined } },
      { ...answer, data: { ...answer.data, type: 'user_authentication_info' } },
    ]) {
      expect(schema.safeParse(other).success).toBe(false);
    }
  });

  test('its operations name the scope, the parameters and every status of a lookup', () => {
    const own = Object.entries(document.paths).filter(([at]) => at.endsWith(`/${resource.collection}/{id}`));
    expect(own).toHaveLength(resource === passwordProfileInfo ? 2 : 1);
    for (const [at, { get }] of own) {
      const named = [...at.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
      const described = get?.parameters?.filter((parameter) => parameter.in === 'path');
      expect(described?.map(({ name }) => name)).toEqual(named);
      expect(described?.every(({ required }) => required)).toBe(true);
      expect(get?.security).toEqual([{ client_credentials: [`${resource.scope}:read`] }]);
      expect(Object.keys(get?.responses ?? {})).toEqual(['200', '304', '401', '403', '404', '503']);
      const { $ref } = get?.responses['200']?.content?.['application/json']?.schema ?? {};
      expect($ref).toBe(`#/components/schemas/${type}`);
    }
  });
});

function expectExactly(schema: Schema | undefined, members: readonly string[]): void {
  expect(Object.keys(schema?.properties ?? {}).sort()).toEqual([...members].sort());
  expect([...(schema?.required ?? [])].sort()).toEqual([...members].sort());
  expect(schema?.additionalProperties).toBe(false);
}

test('no password, hash or other secret has a place in it', () => {
  const text = JSON.stringify(document.components.schemas);
  for (const secret of ['password_hash', '"password"', 'revision', 'username_key'])
    expect(text).not.toContain(secret);
});

test('every status it names for an error is one of the table of faults', () => {
  const statuses = new Set(Object.values(FAULTS).map(({ status }) => String(status)));
  for (const methods of Object.values(document.paths)) {
    for (const { responses } of Object.values(methods)) {
      for (const status of Object.keys(responses)) {
        expect(status < '400' || statuses.has(status)).toBe(true);
      }
    }
  }
});
