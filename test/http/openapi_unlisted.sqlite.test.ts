import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { openOperationClient, operationsOf } from '../support/openapi_client.ts';
import { startService } from '../support/service.ts';

/** The documented responses to paths and methods that the OpenAPI document does not list. */

const service = await startService();
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
const operations = operationsOf(document);
const caller = openOperationClient(document);

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

test.each(operations.map((each) => [each.method.toUpperCase(), each.path] as const))(
  '%s %s with headers over 16 KiB is 431, as documented',
  async (method, path) => {
    const url = path.replace(/\{\w+\}/g, crypto.randomUUID());
    const headers = { 'X-Large': 'x'.repeat(LIMITS.headerBytesMax) };
    const { status } = await caller.sendUndocumented(method, url, 'headers_too_large', headers);
    expect(status).toBe(431);
  },
);

describe('requests that match no operation', () => {
  test.each([...new Set(operations.map(({ path }) => path))])(
    '%s is 405 for every method that is not documented',
    async (path) => {
      const own = operations.filter((each) => each.path === path);
      const url = path.replace(/\{\w+\}/g, crypto.randomUUID());
      const methods = own.flatMap(({ method }) =>
        method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()],
      );
      for (const other of METHODS.filter((method) => !methods.includes(method))) {
        const { status, headers } = await caller.sendUndocumented(other, url, 'method_not_allowed');
        expect([other, status, headers.get('allow')?.split(', ').sort()]).toEqual([
          other,
          405,
          methods.toSorted(),
        ]);
      }
    },
  );

  test('a path that is not documented is 404', async () => {
    for (const path of ['/', '/v2', '/v2/realms', '/v1/authentication-realms', '/admin']) {
      expect((await caller.sendUndocumented('GET', path, 'unknown_route')).status).toBe(404);
    }
  });
});
