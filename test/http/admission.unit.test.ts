import { expect, test } from 'bun:test';
import { routesFrom } from '../../src/http/pipeline/admission.ts';
import { openCall } from '../../src/http/pipeline/call.ts';
import type { Operation } from '../../src/http/pipeline/operation.ts';
import type { OperationDeps } from '../../src/http/pipeline/pipeline.ts';
import { UNLIMITED } from '../../src/http/server/rate_limits.ts';
import { documentReply } from '../../src/http/server/reply.ts';

/** The order in which a call is admitted, beyond the rights that the matrix tests. */

const DONE = documentReply({}, 'no-store');

/** What happens to one call of an operation that is described so, in order. */
async function stepsOf(described: Partial<Operation<OperationDeps>>, headers: Record<string, string> = {}) {
  const steps: string[] = [];
  const step = (name: string) => () => {
    steps.push(name);
    return undefined;
  };
  const deps = {
    store: {},
    limits: { ...UNLIMITED, badCredentials: { admit: step('credentials'), countFailure: () => undefined } },
    loopBudget: { countLookup: step('lookup'), admit: step('turn'), turn: async () => undefined },
    baseUrl: 'https://idp.example',
  } as unknown as OperationDeps;
  const [route] = routesFrom(
    [
      {
        name: 'create-thing',
        method: 'POST',
        path: '/it',
        access: 'open',
        handle: () => (call) => {
          steps.push(call.body === undefined ? 'answer' : `answer ${call.body}`);
          return DONE;
        },
        document: () => ({ summary: 'It.', tag: 'it' }),
        ...described,
      },
    ],
    deps,
  );
  const body = new ReadableStream(
    {
      pull(controller) {
        steps.push('body');
        controller.enqueue(new TextEncoder().encode('{}'));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const request = new Request('https://idp.example/it', { method: 'POST', body, headers });
  const reply = await route?.answers[described.method ?? 'POST']?.(
    openCall(request, {}, 'id', step('address')),
  );
  return [...steps, reply?.status];
}

test('an operation reads the address and the body of a call before it waits for its turn', async () => {
  expect(await stepsOf({ body: 'json' })).toEqual(['address', 'body', 'turn', 'answer {}', 200]);
  expect(await stepsOf({})).toEqual(['turn', 'answer', 200]);
});

test('a lookup is counted and waits for no turn', async () => {
  expect(await stepsOf({ loopUse: 'lookup' })).toEqual(['lookup', 'answer', 200]);
  expect(await stepsOf({ loopUse: 'lookup', body: 'json' })).toEqual(['lookup', 'body', 'answer {}', 200]);
});

test('a form is left to its handler, as is the turn of an operation that takes its own', async () => {
  expect(await stepsOf({ body: 'form', loopUse: 'own turn' })).toEqual(['address', 'answer', 200]);
});

test('failed attempts of an address are checked before a body with credentials is read', async () => {
  const steps = await stepsOf({ access: 'credentials', body: 'json' });
  expect(steps).toEqual(['credentials', 'address', 'body', 'turn', 'answer {}', 200]);
});

test('an operation for pages of the service refuses other origins, except for a GET', async () => {
  expect(await stepsOf({ isOwn: true })).toEqual(['address', 403]);
  expect(await stepsOf({ isOwn: true }, { Origin: 'https://idp.example' })).toEqual(['turn', 'answer', 200]);
  expect(await stepsOf({ isOwn: true, method: 'GET' })).toEqual(['turn', 'answer', 200]);
});

test('an operation that admits its calls itself has no stages before its handler', async () => {
  expect(await stepsOf({ admitsItself: true, body: 'json', loopUse: 'lookup' })).toEqual(['answer', 200]);
});
