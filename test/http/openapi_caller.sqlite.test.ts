import { describe, expect, test } from 'bun:test';
import { type JsonObject, openSchemaValidator, type Schema } from '../support/json_schema.ts';
import { openOperationClient, operationsOf } from '../support/openapi_client.ts';
import { createFixture, oidcPath, startService } from '../support/service.ts';

/** Checks the client of test/http/openapi_conformance.serial.test.ts, with OpenAPI documents that have one error each. */

const GET = 'get-user-authentication-oidc-profile-info';
const TYPE = 'user_authentication_oidc_profile_info';

const service = await startService({ offline: 'true' });
const fixture = await createFixture(service.db);
const token = await service.token('oidc-profile-infos:read');
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;

/** Reads one record with a changed document. */
async function read(change: (document: Changeable) => unknown) {
  const changed = structuredClone(document) as unknown as Changeable;
  change(changed);
  const operation = operationsOf(changed as unknown as JsonObject).find(({ id }) => id === GET);
  if (!operation) throw new Error(`no ${GET}`);
  const { realm, user, oidcLink } = fixture;
  const sent = { path: { realm_id: realm, user_id: user, id: oidcLink }, token };
  return openOperationClient(changed as unknown as JsonObject).send(operation, sent);
}

interface Changeable {
  paths: Record<string, { get: { responses: Record<string, { headers: Record<string, object> }> } }>;
  components: { schemas: Record<string, { properties: { data: Members } }> };
}
interface Members {
  properties: Record<string, object>;
  required: string[];
}

const responses = ({ paths }: Changeable) =>
  Object.entries(paths).find(([path]) => path.endsWith('user-authentication-oidc-profile-info/{id}'))?.[1].get
    .responses ?? {};
const members = ({ components }: Changeable): Members =>
  components.schemas[TYPE]?.properties.data ?? { properties: {}, required: [] };

test('the OpenAPI client accepts a response that matches the document', async () => {
  expect(oidcPath(fixture)).toContain(fixture.oidcLink);
  expect((await read(() => undefined)).status).toBe(200);
});

test.each<[string, (document: Changeable) => unknown]>([
  ['is not documented', (changed) => delete responses(changed)['200']],
  ['header etag is not documented', (changed) => delete responses(changed)['200']?.headers.ETag],
  [
    'header x-more is missing',
    (changed) =>
      Object.assign(responses(changed)['200']?.headers ?? {}, { 'X-More': { required: true, schema: {} } }),
  ],
  ['body/data/subject is not documented', (changed) => delete members(changed).properties.subject],
  [
    'body/data/subject is not integer',
    (changed) => Object.assign(members(changed).properties, { subject: { type: 'integer' } }),
  ],
  ['body/data/more is missing', (changed) => members(changed).required.push('more')],
  ['unknown name', (changed) => Object.assign(members(changed).properties, { subject: { contains: {} } })],
])(
  'the OpenAPI client reports a response that does not match the document: %s',
  async (complaint, change) => {
    await expect(read(change)).rejects.toThrow(complaint);
  },
);

describe('the schema checker', () => {
  const rows: readonly [Schema, unknown, boolean][] = [
    [{ type: 'string', maxLength: 2 }, '👩👩', true],
    [{ type: 'string', maxLength: 2 }, 'abc', false],
    [{ type: 'string', minLength: 1 }, '', false],
    [{ type: ['string', 'null'] }, null, true],
    [{ type: 'integer', minimum: 0, maximum: 9 }, 10, false],
    [{ type: 'integer' }, 1.5, false],
    [{ type: 'number' }, 1.5, true],
    [{ enum: ['a', 'b'] }, 'c', false],
    [{ const: 'a' }, 'b', false],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 1, false],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, null, true],
    [{ oneOf: [{ type: 'string' }, { type: 'null' }] }, 1, false],
    [{ oneOf: [{ type: 'string' }, { type: 'null' }] }, null, true],
    [{ oneOf: [{ type: 'string' }, { const: 'a' }] }, 'a', false],
    [{ minProperties: 1 }, {}, false],
    [{ maxProperties: 1 }, { a: 1, b: 1 }, false],
    [{ minProperties: 1, maxProperties: 1 }, { a: 1 }, true],
    [{ type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 2 }, ['a', 'b', 'c'], false],
    [{ type: 'array', items: { type: 'string' } }, ['a', 1], false],
    [{ type: 'array', minItems: 1 }, [], false],
    [{ type: 'object', properties: {}, additionalProperties: false }, { a: 1 }, false],
    [{ type: 'object', properties: {} }, { a: 1 }, true],
    [{ type: 'object', required: ['a'] }, {}, false],
    [{ type: 'string', pattern: '^a$' }, 'b', false],
    [{ type: 'string', format: 'uri' }, '/relative', false],
    [{ type: 'string', format: 'uuid' }, 'none', false],
    [{ type: 'string', format: 'date-time' }, '2026-01-31T09:00:00Z', false],
    [{ type: 'string', format: 'date-time' }, '2026-01-31T09:00:00.000Z', true],
    [{ type: 'object' }, [], false],
    [{ type: 'object' }, null, false],
    [{ type: 'boolean' }, 'true', false],
  ];

  test.each(rows)('the schema %j accepts %j: %p', (schema, value, fits) => {
    expect(openSchemaValidator({})(schema, value as never).length === 0).toBe(fits);
  });
});
