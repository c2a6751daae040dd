import { afterAll, describe, expect, test } from 'bun:test';
import { giveUp } from '../support/dead_letters.ts';
import { linksOf, membersOf, misfits, withMember, withoutShownOnce } from '../support/document_bodies.ts';
import {
  type Operation,
  openCaller,
  operationsOf,
  type Received,
  type Sent,
  successOf,
} from '../support/document_caller.ts';
import { matched, openWorld } from '../support/document_world.ts';
import type { JsonObject } from '../support/json_schema.ts';
import { startService } from '../support/service.ts';
import { consoleOf, startStaff } from '../support/signed_in.ts';

/**
 * A client that knows nothing but the OpenAPI document: it makes records from the examples, follows links, tries what is
 * right and what is wrong, and holds every answer to the document. A status, header or member that is not documented
 * fails, and so does an operation or a status that is documented and never seen.
 */

const staff = await startStaff();
const service = await startService({ offline: 'true' }, undefined, staff.settings);
const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
const operations = operationsOf(document);
const caller = openCaller(document);
const credentials = (scope: string) => service.client(scope);
const world = await openWorld({ document, operations, caller, credentials, console: consoleOf(service) });
// By requests it takes a day until there are dead letters.
for (const { webhookId } of await service.db.engine.webhooks.list()) await giveUp(service, webhookId, 3);
afterAll(async () => {
  await service.stop();
  staff.stop();
});

const secured = operations.filter(({ scopes }) => scopes !== undefined);
const addressed = secured.filter(({ path }) => path.includes('{'));
const saying = operations.filter(({ body }) => body?.type === 'application/json');
const asking = secured.filter(({ parameters }) => parameters.some((each) => each.in === 'query'));
const reading = operations.filter(({ method }) => method === 'get');

const reads = (name: string) => (each: Operation) =>
  each.parameters.some((parameter) => parameter.name === name);
const row = (operation: Operation) => [operation.method.toUpperCase(), operation.path, operation] as const;

/** Sends what is right but for what is given. */
async function send(operation: Operation, wrong: Sent = {}) {
  return caller.send(operation, { ...(await world.right(operation)), ...wrong });
}

describe.each(operations.map(row))('%s %s', (_, __, operation) => {
  test('is answered as documented where everything is right', async () => {
    expect((await send(operation)).status).toBe(successOf(operation));
  });
});

describe.each(secured.map(row))('%s %s', (_, __, operation) => {
  test('401 without a token, and with one that is none', async () => {
    for (const token of [undefined, 'none']) expect((await send(operation, { token })).status).toBe(401);
  });

  test('403 with every scope but its own', async () => {
    const token = await world.tokenWithout(operation.scopes ?? []);
    expect((await send(operation, { token })).status).toBe(403);
  });
});

describe.each(addressed.map(row))('%s %s', (_, __, operation) => {
  test('404 for every identifier that nobody has, and for what is none', async () => {
    const right = await world.right(operation);
    for (const name of Object.keys(right.path ?? {})) {
      for (const id of [crypto.randomUUID(), 'none']) {
        const path = { ...right.path, [name]: id };
        expect([name, (await caller.send(operation, { ...right, path })).status]).toEqual([name, 404]);
      }
    }
  });
});

describe.each(saying.map(row))('%s %s', (_, __, operation) => {
  const { media } = operation.body as NonNullable<Operation['body']>;

  test('400 for what is no such body', async () => {
    const right = await world.right(operation);
    const wrong = ['', '{', '1', 'null', '[]', '{}', '{"data":null}', '{"data":[]}', '[{"data":{}}]'];
    for (const body of wrong) {
      expect([body, (await caller.send(operation, { ...right, body })).status]).toEqual([body, 400]);
    }
  });

  test('400 or 422 for every member that is not what the document says', async () => {
    const right = await world.right(operation);
    for (const { at, schema } of membersOf(media.schema)) {
      for (const value of misfits(schema)) {
        const body = withMember(right.body ?? null, at, value);
        const { status } = await caller.send(operation, { ...right, body });
        expect([at.join('.'), value, status === 400 || status === 422]).toEqual([at.join('.'), value, true]);
      }
    }
  });

  test('400 for every member that is missing, where it is required', async () => {
    for (const { at, isRequired } of membersOf(media.schema)) {
      const right = await world.right(operation);
      const body = withMember(right.body ?? null, at, undefined);
      const { status } = await caller.send(operation, { ...right, body });
      const expected = isRequired ? 400 : successOf(operation);
      expect([at.join('.'), status]).toEqual([at.join('.'), expected]);
    }
  });

  test('members that are not documented change nothing', async () => {
    const right = await world.right(operation);
    const body = withMember(right.body ?? null, ['unheard'], { of: [1] });
    expect((await caller.send(operation, { ...right, body })).status).toBe(successOf(operation));
  });

  test('415 for another media type, 413 for too much', async () => {
    const right = await world.right(operation);
    const headers = { ...right.headers, 'Content-Type': 'text/plain' };
    expect((await caller.send(operation, { ...right, headers })).status).toBe(415);
    expect((await caller.send(operation, { ...right, body: `"${'x'.repeat(70_000)}"` })).status).toBe(413);
  });
});

describe.each(operations.filter(reads('Origin')).map(row))('%s %s', (_, __, operation) => {
  test('403 for another origin, and for none', async () => {
    for (const headers of [{ Origin: 'https://evil.example' }, {}]) {
      expect((await send(operation, { headers })).status).toBe(403);
    }
  });
});

const creating = saying.filter(({ answers }) => '201' in answers);

describe.each(creating.map(row))('%s %s', (_, __, operation) => {
  test('Location leads to the same body', async () => {
    const made = await send(operation);
    const received = await visit(made.headers.get('location') ?? '');
    const told = JSON.stringify(withoutShownOnce(document, operation, made.body ?? null));
    expect([received.text, received.headers.get('etag')]).toEqual([told, made.headers.get('etag')]);
  });

  test('what is there already is answered with a documented status, and with 201 or 422', async () => {
    const right = await world.right(operation);
    const statuses = [await caller.send(operation, right), await caller.send(operation, right)];
    expect(statuses[0]?.status).toBe(201);
    expect([201, 422]).toContain(statuses[1]?.status as number);
  });
});

const keyed = operations.filter(reads('Idempotency-Key'));

describe.each(keyed.map(row))('%s %s', (_, __, operation) => {
  test('with one Idempotency-Key it happens once; 422 for another body, 400 for what is no key', async () => {
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const right = { ...(await world.right(operation)), headers };
    const [first, again] = [await caller.send(operation, right), await caller.send(operation, right)];
    const told = ({ status, text, headers }: Received) => [
      status,
      text,
      headers.get('etag'),
      headers.get('location'),
    ];
    expect(told(again)).toEqual(told(first));
    const { body = null } = await world.right(operation);
    expect((await caller.send(operation, { ...right, body })).status).toBe(422);
    for (const key of ['', 'a b', 'x'.repeat(256)]) {
      const { status } = await send(operation, { headers: { 'Idempotency-Key': key } });
      expect([key, status]).toEqual([key, 400]);
    }
  });

  test('409 while the first is being answered', async () => {
    const rounds = 20;
    for (let round = 0; round < rounds; round += 1) {
      const headers = { 'Idempotency-Key': crypto.randomUUID() };
      const right = { ...(await world.right(operation)), headers };
      const all = await Promise.all(Array.from({ length: 8 }, () => caller.send(operation, right)));
      const made = all.filter(({ status }) => status === 201);
      expect(new Set(made.map(({ text }) => text)).size).toBe(1);
      if (all.some(({ status }) => status === 409)) return;
    }
    throw new Error(`never seen in ${rounds} rounds`);
  });
});

describe.each(asking.map(row))('%s %s', (_, __, operation) => {
  const parameters = operation.parameters.filter((each) => each.in === 'query');

  test.each(parameters.map((each) => [each.name, each.schema] as const))(
    '%s takes every value that is documented, and no other',
    async (name, { minimum, maximum = 0, enum: choices = [] }) => {
      const right = minimum === undefined ? choices : [minimum, maximum];
      const wrong = minimum === undefined ? ['none('] : [minimum - 1, maximum + 1, 'one', '1.5', ''];
      for (const value of [...right, ...wrong]) {
        const { status } = await ask(operation, { [name]: String(value) });
        expect([value, status]).toEqual([value, right.includes(value) ? 200 : 400]);
      }
    },
  );

  test('400 for one that is given twice, and what is not documented is ignored', async () => {
    for (const { name, example } of parameters) {
      const said = `${encodeURIComponent(name)}=${encodeURIComponent(String(example))}`;
      const { query = '', ...right } = await world.right(operation);
      const other = query
        .split('&')
        .filter((each) => each !== '' && !each.startsWith(said.split('=')[0] ?? ''));
      const twice = [...other, said, said].join('&');
      expect([name, (await caller.send(operation, { ...right, query: twice })).status]).toEqual([name, 400]);
    }
    expect((await ask(operation, { unheard: '1' })).status).toBe(200);
  });

  test('400 without one that is required', async () => {
    const required = parameters.filter((each) => each.required);
    for (const { name } of required) {
      expect([name, (await send(operation, { query: '' })).status]).toEqual([name, 400]);
    }
  });
});

describe.each(asking.filter(reads('page[limit]')).map(row))('%s %s', (_, __, operation) => {
  test('every link of a page leads to a page; both ways of paging see the same records', async () => {
    const counted = await pagesFrom(await ask(operation, { 'page[limit]': '2' }));
    const followed = await pagesFrom(await ask(operation, { 'page[limit]': '2', 'page[after]': '' }));
    // A log may grow meanwhile: at its end, or that of deliveries at its beginning.
    const isGrowing = /\/(log|deliveries)$/.test(operation.path);
    if (isGrowing) expect(followed).toEqual(expect.arrayContaining([...counted]));
    else expect(followed).toEqual([...counted]);
    expect(counted.length).toBeGreaterThan(0);
    expect(new Set(counted).size).toBe(counted.length);
  });
});

describe.each(operations.filter(reads('If-Match')).map(row))('%s %s', (_, __, operation) => {
  test('412 for what it no longer is, and done for what it is', async () => {
    const right = await world.right(operation);
    const read = readingOf(operation);
    const { headers } = await caller.send(read, { ...(await world.right(read)), path: right.path ?? {} });
    const stale = { 'If-Match': '"0000000000000000-00000000"' };
    expect((await caller.send(operation, { ...right, headers: stale })).status).toBe(412);
    const fresh = { 'If-Match': headers.get('etag') ?? '' };
    expect((await caller.send(operation, { ...right, headers: fresh })).status).toBe(successOf(operation));
  });
});

describe.each(operations.filter(reads('If-None-Match')).map(row))('%s %s', (_, __, operation) => {
  test('304 for what it still is', async () => {
    const etag = (await send(operation)).headers.get('etag') ?? '';
    expect((await send(operation, { headers: { 'If-None-Match': etag } })).status).toBe(304);
  });
});

describe.each(addressed.filter(({ method }) => method === 'delete').map(row))('%s %s', (_, __, operation) => {
  test('what is deleted is gone', async () => {
    const right = await world.right(operation);
    expect((await caller.send(operation, right)).status).toBe(204);
    expect((await caller.send(operation, right)).status).toBe(404);
  });
});

describe.each(operations.filter(({ body }) => body?.type.endsWith('form-urlencoded')).map(row))(
  '%s %s',
  (_, __, operation) => {
    test('400 for a parameter that stands twice, 401 for a wrong secret, 413 for too much', async () => {
      const { body } = await world.right(operation);
      const said = String(body);
      expect((await send(operation, { body: `${said}&client_id=x` })).status).toBe(400);
      expect(
        (await send(operation, { body: said.replace(/client_secret=[^&]+/, 'client_secret=x') })).status,
      ).toBe(401);
      expect((await send(operation, { body: said.padEnd(70_000, 'x') })).status).toBe(413);
    });
  },
);

const finding = ({ path }: Operation) =>
  operations.find((each) => each.method === 'get' && `${each.path}/search` === path);
const searching = saying.filter((each) => each.method === 'post' && finding(each) !== undefined);

describe.each(searching.map(row))('%s %s', (_, __, operation) => {
  test('finds the record that the same filter finds in a URL', async () => {
    const right = await world.right(operation);
    const { filter } = right.body as { readonly filter: string };
    const listed = ask(finding(operation) as Operation, { filter });
    const [found, searched] = [await listed, await caller.send(operation, right)].map(
      ({ body }) => body as Page,
    );
    expect(searched?.data).toHaveLength(1);
    expect(searched?.data).toEqual(found?.data as Page['data']);
  });
});

/** Headers of a call; figures are as long as they are. */
const CHANGING = new Set(['x-request-id', 'date', 'content-length']);

describe.each(reading.map(row))('%s %s', (_, __, operation) => {
  test('HEAD says what GET says, without the body', async () => {
    const right = await world.right(operation);
    const [got, headed] = [await caller.send(operation, right), await caller.head(operation, right)];
    const plain = ({ status, headers }: Received) => [
      status,
      [...headers].filter(([name]) => !CHANGING.has(name)).sort(),
    ];
    expect(plain(headed)).toEqual(plain(got));
  });
});

describe.each(reading.filter((each) => secured.includes(each)).map(row))('%s %s', (_, __, operation) => {
  test('no link in an answer leads out of the document', async () => {
    const links = linksOf((await send(operation)).body ?? null);
    expect(links.length).toBeGreaterThan(0);
    for (const link of links) await visit(link);
  });
});

/** What this client cannot cause. Each is caused elsewhere in the suite. */
const UNSEEN: readonly { readonly why: string; excuses(operation: Operation, status: string): boolean }[] = [
  { why: 'a bug', excuses: (_, status) => status === '500' },
  { why: 'what became too old', excuses: (_, status) => status === '410' },
  { why: 'a broken or busy database, or a start', excuses: (_, status) => status === '503' },
  { why: 'no rate is set', excuses: (_, status) => status === '429' },
  { why: 'a body that does not come takes 4.5 seconds', excuses: (_, status) => status === '408' },
  {
    why: 'a removal that takes more than 1,000 records along, a preset realm, a client that locks itself out',
    excuses: ({ method, path }, status) => status === '422' && (method === 'delete' || /^\/admin/.test(path)),
  },
];

test('every operation and every status that is documented was seen, but for those with a reason', () => {
  const documented = operations.flatMap((operation) =>
    Object.keys(operation.answers).map((status) => [operation, status] as const),
  );
  const unseen = documented.filter(([{ id }, status]) => !caller.seen.has(`${id} ${status}`));
  const unexcused = unseen.filter((each) => !UNSEEN.some(({ excuses }) => excuses(...each)));
  expect(unexcused.map(([{ id }, status]) => `${id} ${status}`)).toEqual([]);
  for (const { why, excuses } of UNSEEN)
    expect([why, unseen.some((each) => excuses(...each))]).toEqual([why, true]);
});

/** The GET of the record that a path leads to, or of the one that it does something with. */
function readingOf({ path }: Operation): Operation {
  const read = operations.find((each) => each.path === path.replace(/[^}]*$/, '') && each.method === 'get');
  if (!read) throw new Error(`${path} cannot be read`);
  return read;
}

/** Asks with these parameters beside those that are required. */
async function ask(operation: Operation, said: Readonly<Record<string, string>>): Promise<Received> {
  const right = await world.right(operation);
  const query = new URLSearchParams(right.query);
  for (const [name, value] of Object.entries(said)) query.set(name, value);
  return caller.send(operation, { ...right, query: query.toString() });
}

/** Follows an absolute address to the operation it names. */
async function visit(address: string): Promise<Received> {
  const url = new URL(address);
  const operation = reading.find(({ path }) => matched(path, url.pathname));
  if (!operation) throw new Error(`${url.pathname} is not documented`);
  const path = matched(operation.path, url.pathname) ?? {};
  const { token } = await world.right(operation);
  const received = await caller.send(operation, { path, query: url.search.slice(1), token });
  expect([operation.id, received.status]).toEqual([operation.id, successOf(operation)]);
  return received;
}

type Page = JsonObject & {
  readonly data: readonly { readonly id: string }[];
  readonly links: Readonly<Record<string, string | null>>;
};

/** The identifiers on a page and on all that `next` leads to; every other link is visited as well. */
async function pagesFrom(first: Received): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let page: Received | undefined = first; page; ) {
    const { data, links } = page.body as Page;
    ids.push(...data.map(({ id }) => id));
    page = undefined;
    for (const [name, link] of Object.entries(links)) {
      if (link === null) continue;
      const received = await visit(link);
      if (name === 'next') page = received;
    }
  }
  return ids;
}
