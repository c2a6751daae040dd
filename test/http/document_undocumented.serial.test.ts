import { afterAll, describe, expect, test } from 'bun:test';
import { openCaller, operationsOf } from '../support/document_caller.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { startService } from '../support/service.ts';

/** What the OpenAPI document says of paths and methods that it does not list. */

const service = await startService();
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
const operations = operationsOf(document);
const caller = openCaller(document);
afterAll(() => service.stop());

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

describe('what is no operation', () => {
  test.each([...new Set(operations.map(({ path }) => path))])(
    '%s: 405 for any other method',
    async (path) => {
      const own = operations.filter((each) => each.path === path);
      const spelled = path.replace(/\{\w+\}/g, crypto.randomUUID());
      const methods = own.flatMap(({ method }) =>
        method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()],
      );
      for (const other of METHODS.filter((method) => !methods.includes(method))) {
        const { status, headers } = await caller.stray(other, spelled, 'method_not_allowed');
        expect([other, status, headers.get('allow')?.split(', ').sort()]).toEqual([
          other,
          405,
          methods.toSorted(),
        ]);
      }
    },
  );

  test('404 for a path that is not documented', async () => {
    for (const path of ['/', '/v2', '/v2/realms', '/v1/authentication-realms', '/admin']) {
      expect((await caller.stray('GET', path, 'unknown_route')).status).toBe(404);
    }
  });
});
