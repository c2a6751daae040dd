import { describe, expect, test } from 'bun:test';
import { consoleCredentials, startConsoleProvider } from '../support/console_sign_in.ts';
import { createDeadLetters } from '../support/dead_letter_fixtures.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { bodyMembers, hideShownOnce, invalidValues, linksOf, withMember } from '../support/openapi_bodies.ts';
import {
  isForBrowsers,
  type Operation,
  type OperationRequest,
  type OperationResponse,
  openOperationClient,
  operationsOf,
  successOf,
} from '../support/openapi_client.ts';
import { createsRecord, matchPath, openValidRequests, parameterValues } from '../support/openapi_requests.ts';
import { startService } from '../support/service.ts';
import { createAccountMember } from '../support/sign_in.ts';

/**
 * A client that uses only the OpenAPI document: it creates records from the examples, follows links, sends valid and
 * invalid requests, and checks every response against the document. A status, header or member that is not documented
 * fails, and so does an operation or a status that is documented and never seen.
 */

const consoleProvider = await startConsoleProvider();
const service = await startService({ offline: 'true' }, undefined, consoleProvider.settings);
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
const operations = operationsOf(document);
const caller = openOperationClient(document);
const credentials = (scope: string) => service.client(scope);
const signedIn = { console: consoleCredentials(service), signIn: await createAccountMember(service.db) };
const world = await openValidRequests({ document, operations, caller, credentials, ...signedIn });
// Failed deliveries become dead letters only after a day.
const webhooks = await service.db.engine.webhooks.list();
for (const { webhookId } of webhooks) await createDeadLetters(service, webhookId, 3);

const secured = operations.filter(({ scopes }) => scopes !== undefined);
const withPathParameters = secured.filter(({ path }) => path.includes('{'));
const withJsonBody = operations.filter(({ body }) => body?.type === 'application/json');
const withQuery = secured.filter(({ parameters }) => parameters.some((each) => each.in === 'query'));
const gets = operations.filter(({ method }) => method === 'get');

const reads = (named: string) => (each: Operation) => each.parameters.some(({ name }) => name === named);
const row = (operation: Operation) => [operation.method.toUpperCase(), operation.path, operation] as const;

/** Sends a valid request, with the given parts replaced. */
async function send(operation: Operation, wrong: OperationRequest = {}) {
  return caller.send(operation, { ...(await world.validRequest(operation)), ...wrong });
}

describe.each(operations.map(row))('%s %s', (_, __, operation) => {
  test('a valid request has the documented success status', async () => {
    expect((await send(operation)).status).toBe(successOf(operation));
  });
});

describe.each(secured.map(row))('%s %s', (_, __, operation) => {
  test('a request without a token or with an invalid one is 401', async () => {
    for (const token of [undefined, 'none']) expect((await send(operation, { token })).status).toBe(401);
  });

  test('a request with every other scope is 403', async () => {
    const token = await world.tokenWithout(operation.scopes ?? []);
    expect((await send(operation, { token })).status).toBe(403);
  });
});

describe.each(withPathParameters.map(row))('%s %s', (_, __, operation) => {
  test('a request with an unknown ID, a malformed one or one with NUL in the path is 404', async () => {
    const right = await world.validRequest(operation);
    for (const [name, valid] of Object.entries(right.path ?? {})) {
      for (const id of [crypto.randomUUID(), 'none', `${valid}\0`, '\0']) {
        const path = { ...right.path, [name]: id };
        expect([name, (await caller.send(operation, { ...right, path })).status]).toEqual([name, 404]);
      }
    }
  });
});

describe.each(withJsonBody.map(row))('%s %s', (_, __, operation) => {
  const { media } = operation.body as NonNullable<Operation['body']>;

  test('a request with a malformed body is 400', async () => {
    const right = await world.validRequest(operation);
    const wrong = ['', '{', '1', 'null', '[]', '{}', '{"data":null}', '{"data":[]}', '[{"data":{}}]'];
    for (const body of wrong) {
      expect([body, (await caller.send(operation, { ...right, body })).status]).toEqual([body, 400]);
    }
  });

  test('a request with a member that violates its schema is 400 or 422', async () => {
    const right = await world.validRequest(operation);
    for (const { at, schema } of bodyMembers(media.schema, [], right.body)) {
      for (const value of invalidValues(schema)) {
        const body = withMember(right.body ?? null, at, value);
        const { status } = await caller.send(operation, { ...right, body });
        expect([at.join('.'), value, status === 400 || status === 422]).toEqual([at.join('.'), value, true]);
      }
    }
  });

  test('a request without a required member is 400, without an optional one it succeeds', async () => {
    const { body: form } = await world.validRequest(operation);
    for (const { at, isRequired } of bodyMembers(media.schema, [], form)) {
      const right = await world.validRequest(operation);
      const body = withMember(right.body ?? null, at, undefined);
      const { status } = await caller.send(operation, { ...right, body });
      const expected = isRequired ? 400 : successOf(operation);
      expect([at.join('.'), status]).toEqual([at.join('.'), expected]);
    }
  });

  test('a member that is not documented is ignored', async () => {
    const right = await world.validRequest(operation);
    const body = withMember(right.body ?? null, ['undocumented'], { of: [1] });
    expect((await caller.send(operation, { ...right, body })).status).toBe(successOf(operation));
  });

  test('a body of another media type is 415, a body that is too large 413', async () => {
    const right = await world.validRequest(operation);
    const headers = { ...right.headers, 'Content-Type': 'text/plain' };
    expect((await caller.send(operation, { ...right, headers })).status).toBe(415);
    expect((await caller.send(operation, { ...right, body: `"${'x'.repeat(70_000)}"` })).status).toBe(413);
  });
});

describe.each(operations.filter(reads('Origin')).map(row))('%s %s', (_, __, operation) => {
  test('a request with another Origin or without one is 403', async () => {
    for (const headers of [{ Origin: 'https://evil.example' }, {}]) {
      expect((await send(operation, { headers })).status).toBe(403);
    }
  });
});

const creates = withJsonBody.filter(createsRecord);

describe.each(creates.map(row))('%s %s', (_, __, operation) => {
  test('Location returns the same body and ETag, without the secret', async () => {
    const made = await send(operation);
    const received = await follow(made.headers.get('location') ?? '');
    const expected = JSON.stringify(hideShownOnce(document, operation, made.body ?? null));
    expect([received.text, received.headers.get('etag')]).toEqual([expected, made.headers.get('etag')]);
  });

  test('a repeated request to create the same record is 201 or 422', async () => {
    const right = await world.validRequest(operation);
    const statuses = [await caller.send(operation, right), await caller.send(operation, right)];
    expect(statuses[0]?.status).toBe(201);
    expect([201, 422]).toContain(statuses[1]?.status as number);
  });
});

const idempotent = creates.filter(reads('Idempotency-Key'));

describe.each(idempotent.map(row))('%s %s', (_, __, operation) => {
  test('a repeated Idempotency-Key replays the response; another body is 422, an invalid key 400', async () => {
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const right = { ...(await world.validRequest(operation)), headers };
    const [first, again] = [await caller.send(operation, right), await caller.send(operation, right)];
    const replayed = ({ status, text, headers }: OperationResponse) => [
      status,
      text,
      headers.get('etag'),
      headers.get('location'),
    ];
    expect(replayed(again)).toEqual(replayed(first));
    const { body = null } = await world.validRequest(operation);
    expect((await caller.send(operation, { ...right, body })).status).toBe(422);
    for (const key of ['', 'a b', 'x'.repeat(256)]) {
      const { status } = await send(operation, { headers: { 'Idempotency-Key': key } });
      expect([key, status]).toEqual([key, 400]);
    }
  });

  test('a concurrent request with the same Idempotency-Key is 409', async () => {
    const rounds = 20;
    for (let round = 0; round < rounds; round += 1) {
      const headers = { 'Idempotency-Key': crypto.randomUUID() };
      const right = { ...(await world.validRequest(operation)), headers };
      const all = await Promise.all(Array.from({ length: 8 }, () => caller.send(operation, right)));
      const made = all.filter(({ status }) => status === 201);
      expect(new Set(made.map(({ text }) => text)).size).toBe(1);
      if (all.some(({ status }) => status === 409)) return;
    }
    throw new Error(`no 409 in ${rounds} rounds`);
  });
});

describe.each(withQuery.map(row))('%s %s', (_, __, operation) => {
  const parameters = operation.parameters.filter((each) => each.in === 'query');

  test.each(parameters.map((each) => [each.name, each.schema] as const))(
    'the parameter %s accepts every documented value, and rejects others unless it is a set, which ignores them',
    async (name, schema) => {
      const { right, wrong } = parameterValues(schema);
      for (const value of [...right, ...wrong]) {
        const { status } = await requestWith(operation, { [name]: String(value) });
        expect([value, status]).toEqual([value, right.includes(value) ? successOf(operation) : 400]);
      }
    },
  );

  test('a parameter that is given twice is 400, one that is not documented is ignored', async () => {
    for (const { name, example } of parameters) {
      const pair = `${encodeURIComponent(name)}=${encodeURIComponent(String(example))}`;
      const { query = '', ...right } = await world.validRequest(operation);
      const other = query
        .split('&')
        .filter((each) => each !== '' && !each.startsWith(pair.split('=')[0] ?? ''));
      const twice = [...other, pair, pair].join('&');
      expect([name, (await caller.send(operation, { ...right, query: twice })).status]).toEqual([name, 400]);
    }
    expect((await requestWith(operation, { undocumented: '1' })).status).toBe(successOf(operation));
  });

  test('a request without a required parameter is 400', async () => {
    const required = parameters.filter((each) => each.required);
    for (const { name } of required) {
      expect([name, (await send(operation, { query: '' })).status]).toEqual([name, 400]);
    }
  });
});

describe.each(gets.filter(reads('page[limit]')).map(row))('%s %s', (_, __, operation) => {
  test('every link of a page returns a page, and both ways of paging return the same records', async () => {
    const counted = await pagesFrom(await requestWith(operation, { 'page[limit]': '2' }));
    const followed = await pagesFrom(await requestWith(operation, { 'page[limit]': '2', 'page[after]': '' }));
    // Logs grow during the test: at the end, or that of deliveries at the start.
    const isGrowing = /\/(log|deliveries)$/.test(operation.path);
    if (isGrowing) expect(followed).toEqual(expect.arrayContaining([...counted]));
    else expect(followed).toEqual([...counted]);
    expect(counted.length).toBeGreaterThan(0);
    expect(new Set(counted).size).toBe(counted.length);
  });
});

describe.each(operations.filter(reads('If-Match')).map(row))('%s %s', (_, __, operation) => {
  test('a stale If-Match is 412, the current ETag succeeds', async () => {
    const right = await world.validRequest(operation);
    const read = getOf(operation);
    const reading = { ...(await world.validRequest(read)), path: right.path ?? {} };
    const { headers } = await caller.send(read, reading);
    const stale = { 'If-Match': '"0000000000000000-00000000"' };
    expect((await caller.send(operation, { ...right, headers: stale })).status).toBe(412);
    const fresh = { 'If-Match': headers.get('etag') ?? '' };
    expect((await caller.send(operation, { ...right, headers: fresh })).status).toBe(successOf(operation));
  });
});

describe.each(operations.filter(reads('If-None-Match')).map(row))('%s %s', (_, __, operation) => {
  test('the current ETag in If-None-Match is 304', async () => {
    const etag = (await send(operation)).headers.get('etag') ?? '';
    expect((await send(operation, { headers: { 'If-None-Match': etag } })).status).toBe(304);
  });
});

describe.each(withPathParameters.filter(({ method }) => method === 'delete').map(row))(
  '%s %s',
  (_, __, operation) => {
    test('a deleted record is 404', async () => {
      const right = await world.validRequest(operation);
      expect((await caller.send(operation, right)).status).toBe(204);
      expect((await caller.send(operation, right)).status).toBe(404);
    });
  },
);

const forms = operations.filter(
  (each) => each.body?.type.endsWith('form-urlencoded') && !isForBrowsers(each),
);

describe.each(forms.map(row))('%s %s', (_, __, operation) => {
  test('a form with a duplicate parameter is 400, with a wrong secret 401, too large 413', async () => {
    const { body } = await world.validRequest(operation);
    const form = String(body);
    expect((await send(operation, { body: `${form}&client_id=x` })).status).toBe(400);
    expect(
      (await send(operation, { body: form.replace(/client_secret=[^&]+/, 'client_secret=x') })).status,
    ).toBe(401);
    expect((await send(operation, { body: form.padEnd(70_000, 'x') })).status).toBe(413);
  });
});

const listOf = ({ path }: Operation) =>
  operations.find((each) => each.method === 'get' && `${each.path}/search` === path);
const searches = withJsonBody.filter((each) => each.method === 'post' && listOf(each) !== undefined);

describe.each(searches.map(row))('%s %s', (_, __, operation) => {
  test('a search finds the record that the same filter in a URL finds', async () => {
    const right = await world.validRequest(operation);
    const { filter } = right.body as { readonly filter: string };
    const listed = requestWith(listOf(operation) as Operation, { filter });
    const [found, searched] = [await listed, await caller.send(operation, right)].map(
      ({ body }) => body as Page,
    );
    expect(searched?.data).toHaveLength(1);
    expect(searched?.data).toEqual(found?.data as Page['data']);
  });
});

/** Headers that differ between requests. */
const CHANGING = new Set(['x-request-id', 'date', 'content-length', 'transfer-encoding']);

describe.each(gets.map(row))('%s %s', (_, __, operation) => {
  test('HEAD has the status and headers of GET, without the body', async () => {
    const right = await world.validRequest(operation);
    const [got, headed] = [await caller.send(operation, right), await caller.head(operation, right)];
    const plain = ({ status, headers }: OperationResponse) => [
      status,
      [...headers].filter(([name]) => !CHANGING.has(name)).sort(),
    ];
    expect(plain(headed)).toEqual(plain(got));
  });
});

describe.each(gets.filter((each) => secured.includes(each)).map(row))('%s %s', (_, __, operation) => {
  test('every link in the response is a documented path', async () => {
    const links = linksOf((await send(operation)).body ?? null);
    expect(links.length > 0 || operation.id === 'export-records').toBe(true);
    for (const link of links) await follow(link);
  });
});

const OTHER = /^(write-batch 4(09|12|22)|get-account(-member)? 400|check-id-token 200|import-records 413)$/;
/** Responses that this client cannot cause. Other suites cover each. */
const UNSEEN: readonly { readonly why: string; covers(operation: Operation, status: string): boolean }[] = [
  { why: 'a bug', covers: (_, status) => status === '500' },
  { why: 'an expired cursor', covers: (_, status) => status === '410' },
  { why: 'a failing or busy database, or a start', covers: (_, status) => status === '503' },
  { why: 'suites of batches, renewals, tokens, files', covers: ({ id }, of) => OTHER.test(`${id} ${of}`) },
  { why: 'no rate limit is set', covers: (_, status) => status === '429' },
  { why: 'the suites of sign-in through a provider', covers: (each) => isForBrowsers(each) },
  { why: 'settings without a realm', covers: ({ path }, of) => of === '404' && !path.includes('{') },
  { why: 'a body that does not arrive takes 4.5 seconds', covers: (_, status) => status === '408' },
  {
    why: 'a delete with more than 1,000 dependents, a preset realm, a client that locks itself out, a setting without effect, a self-signup',
    covers: ({ method, path }, of) =>
      of === '422' && (method === 'delete' || /^\/admin|account-(?:a|members\/tokens)/.test(path)),
  },
];

test('every documented operation and status was seen, except those with a reason', () => {
  const documented = operations.flatMap((operation) =>
    Object.keys(operation.responses).map((status) => [operation, status] as const),
  );
  const unseen = documented.filter(([{ id }, status]) => !caller.covered.has(`${id} ${status}`));
  const unexplained = unseen.filter((each) => !UNSEEN.some(({ covers }) => covers(...each)));
  expect(unexplained.map(([{ id }, status]) => `${id} ${status}`)).toEqual([]);
  for (const { why, covers } of UNSEEN)
    expect([why, unseen.some((each) => covers(...each))]).toEqual([why, true]);
});

/** The GET of the record of a path, or of the record that its action changes. */
function getOf({ path }: Operation): Operation {
  const read = operations.find((each) => each.path === path.replace(/[^}]*$/, '') && each.method === 'get');
  if (!read) throw new Error(`no GET for ${path}`);
  return read;
}

/** Sends a valid request with these query parameters added. */
async function requestWith(operation: Operation, parameters: Readonly<Record<string, string>>) {
  const right = await world.validRequest(operation);
  const query = new URLSearchParams(right.query);
  for (const [name, value] of Object.entries(parameters)) query.set(name, value);
  return caller.send(operation, { ...right, query: query.toString() });
}

/** Sends the GET of an absolute URL. */
async function follow(address: string): Promise<OperationResponse> {
  const url = new URL(address);
  const operation = gets.find(({ path }) => matchPath(path, url.pathname));
  if (!operation) throw new Error(`${url.pathname} is not documented`);
  const path = matchPath(operation.path, url.pathname) ?? {};
  const { token } = await world.validRequest(operation);
  const received = await caller.send(operation, { path, query: url.search.slice(1), token });
  expect([operation.id, received.status]).toEqual([operation.id, successOf(operation)]);
  return received;
}

type Page = JsonObject & {
  readonly data: readonly { readonly id: string }[];
  readonly links: Readonly<Record<string, string | null>>;
};

/** The IDs on a page and on all next pages; follows every other link as well. */
async function pagesFrom(first: OperationResponse): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let page: OperationResponse | undefined = first; page; ) {
    const { data, links } = page.body as Page;
    ids.push(...data.map(({ id }) => id));
    page = undefined;
    for (const [name, link] of Object.entries(links)) {
      if (link === null) continue;
      const received = await follow(link);
      if (name === 'next') page = received;
    }
  }
  return ids;
}
