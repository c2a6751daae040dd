import { describe, expect, test } from 'bun:test';
import { changeClient, rotateSecret } from '../../src/access/clients/clients.ts';
import { LIMITS } from '../../src/model/limits.ts';
import {
  checkedResponse,
  comparableResponse,
  createFixture,
  LOOKUPS,
  startService,
} from '../support/service.ts';

const service = await startService();
const fixture = await createFixture(service.db);
const { clientId: id, secret } = await service.client('profile-infos:read users:read');

const GRANTED = 'oidc-profile-infos:read password-profile-infos:read users:read';

interface Granted {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly expires: number;
  readonly identifier: string;
  readonly scope: string;
}

interface Sent {
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
}

function form(fields: Record<string, string> = {}): string {
  const whole = { grant_type: 'client_credentials', client_id: id, client_secret: secret, ...fields };
  return new URLSearchParams(Object.entries(whole).filter(([, value]) => value !== '-')).toString();
}

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

async function send({ path = '/oauth/access_token', query = '', headers = FORM, body = form() }: Sent = {}) {
  const answer = await fetch(service.url + path + query, { method: 'POST', headers, body });
  return checkedResponse(answer, [id, secret]);
}

function basic(user: string, password: string, scheme = 'Basic'): Record<string, string> {
  return { ...FORM, Authorization: `${scheme} ${Buffer.from(`${user}:${password}`).toString('base64')}` };
}

test('the token response has exactly the documented members and must not be cached', async () => {
  const answer = await send();
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('pragma')).toBe('no-cache');
  const granted = (await answer.json()) as Granted;
  expect(granted).toEqual({
    access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    token_type: 'Bearer',
    expires_in: 3600,
    expires: expect.any(Number),
    identifier: 'client_credentials',
    scope: GRANTED,
  });
  expect(Number.isInteger(granted.expires)).toBe(true);
  expect(Math.abs(granted.expires - 3600 - service.clock.now() / 1000)).toBeLessThan(5);
  expect((await service.get(LOOKUPS[0].path(fixture), granted.access_token)).status).toBe(200);
});

describe('200', () => {
  const VALID: [string, () => Sent][] = [
    ['the path /oauth/token', () => ({ path: '/oauth/token' })],
    ['a trailing slash', () => ({ path: '/oauth/access_token/' })],
    ['a form with a JSON content type', () => ({ headers: { 'Content-Type': 'application/json' } })],
    ['a form without a content type', () => ({ headers: {}, body: new TextEncoder().encode(form()) })],
    [
      'a form with a charset',
      () => ({ headers: { 'Content-Type': `${FORM['Content-Type']}; charset=UTF-8` } }),
    ],
    ['Basic', () => ({ headers: basic(id, secret), body: 'grant_type=client_credentials' })],
    [
      'Basic in lower case',
      () => ({ headers: basic(id, secret, 'basic'), body: 'grant_type=client_credentials' }),
    ],
    [
      'Basic with form-encoded credentials (RFC 6749, 2.3.1)',
      () => ({ headers: basic(escaped(id), escaped(secret)), body: 'grant_type=client_credentials' }),
    ],
    [
      'a bearer token in addition to the form',
      () => ({ headers: { ...FORM, Authorization: 'Bearer stale' } }),
    ],
    [
      'an unknown scheme in addition to the form',
      () => ({ headers: { ...FORM, Authorization: 'Basically x' } }),
    ],
    ['unknown fields', () => ({ body: `${form()}&audience=x&audience=y&resource=` })],
    ['an unknown query parameter', () => ({ query: '?trace=1' })],
    ['an empty scope', () => ({ body: form({ scope: '' }) })],
  ];
  test.each(VALID)('a token request is 200 with %s', async (_name, sent) => {
    const answer = await send(sent());
    expect(answer.status).toBe(200);
    expect(((await answer.json()) as Granted).scope).toBe(GRANTED);
  });

  function escaped(text: string): string {
    return [...text].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
  }
});

describe('scope', () => {
  const NARROWED: [string, string][] = [
    ['users:read', 'users:read'],
    ['profile-infos:read', 'oidc-profile-infos:read password-profile-infos:read'],
    ['  users:read   oidc-profile-infos:read ', 'users:read oidc-profile-infos:read'],
    ['users:read users:read', 'users:read'],
    ['profile-infos:read oidc-profile-infos:read users:read', GRANTED],
  ];
  test.each(NARROWED)('a token request for the scope %j grants %s', async (scope, granted) => {
    expect(((await (await send({ body: form({ scope }) })).json()) as Granted).scope).toBe(granted);
  });

  test('a token with a narrowed scope does not permit more', async () => {
    const answer = (await (await send({ body: form({ scope: 'users:read' }) })).json()) as Granted;
    for (const { path } of LOOKUPS) {
      expect((await service.get(path(fixture), answer.access_token)).status).toBe(403);
    }
  });

  const MORE = [
    'users:write',
    'users:read users:write',
    'profile-infos:write',
    'admin',
    'nonsense',
    '*',
    'USERS:READ',
    'users:read,oidc-profile-infos:read',
    'users:read\tadmin',
    '__proto__',
    'constructor',
  ];
  test.each(MORE)('a token request for the scope %j is invalid_scope', async (scope) => {
    expect(await refusal(await send({ body: form({ scope }) }))).toEqual([400, 'invalid_scope']);
  });
});

/** Status and code of an error response, after a check of both error forms and the headers of RFC 6749, 5.2. */
async function refusal(answer: Response): Promise<[number, string]> {
  const body = (await answer.json()) as { error: string; error_description: string; errors: object[] };
  const title = answer.status === 401 ? 'Unauthorized' : 'Bad Request';
  expect(Object.keys(body).sort()).toEqual(['error', 'error_description', 'errors']);
  expect(body.errors).toEqual([
    { status: String(answer.status), title, detail: body.error_description, code: body.error },
  ]);
  expect(body.error_description).toMatch(/^[\w ,:-]+$/);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('pragma')).toBe('no-cache');
  expect(answer.headers.get('www-authenticate')).toBe(
    answer.status === 401 ? 'Basic realm="authrealm"' : (null as never),
  );
  return [answer.status, body.error];
}

describe('invalid token requests', () => {
  const credentials = (name: string) => `?${name}=x`;
  const BAD: [string, () => Sent, [number, string]][] = [
    ['no grant_type', () => ({ body: form({ grant_type: '-' }) }), [400, 'invalid_request']],
    ['an empty body', () => ({ body: '' }), [400, 'invalid_request']],
    ['JSON', () => ({ body: '{"grant_type":"client_credentials"}' }), [400, 'invalid_request']],
    [
      'the implicit grant',
      () => ({ body: form({ grant_type: 'implicit' }) }),
      [400, 'unsupported_grant_type'],
    ],
    [
      'the password grant',
      () => ({ body: form({ grant_type: 'password' }) }),
      [400, 'unsupported_grant_type'],
    ],
    ['an empty grant_type', () => ({ body: form({ grant_type: '' }) }), [400, 'unsupported_grant_type']],
    ['a repeated grant_type', () => ({ body: `${form()}&grant_type=x` }), [400, 'invalid_request']],
    ['a repeated client_id', () => ({ body: `${form()}&client_id=${id}` }), [400, 'invalid_request']],
    ['a repeated client_secret', () => ({ body: `${form()}&client_secret=` }), [400, 'invalid_request']],
    ['a repeated scope', () => ({ body: `${form({ scope: '' })}&scope=` }), [400, 'invalid_request']],
    ['Basic and body', () => ({ headers: basic(id, secret) }), [400, 'invalid_request']],
    [
      'Basic and a client_id alone',
      () => ({ headers: basic(id, secret), body: form({ client_secret: '-' }) }),
      [400, 'invalid_request'],
    ],
    [
      'Basic and a client_secret alone',
      () => ({ headers: basic(id, secret), body: form({ client_id: '-' }) }),
      [400, 'invalid_request'],
    ],
    [
      'Basic without a colon',
      () => ({ headers: { Authorization: `Basic ${btoa('x')}` }, body: 'grant_type=client_credentials' }),
      [400, 'invalid_request'],
    ],
    [
      'Basic without credentials',
      () => ({ headers: { Authorization: 'Basic' }, body: 'grant_type=client_credentials' }),
      [400, 'invalid_request'],
    ],
    [
      'Basic without a client_id',
      () => ({ headers: basic('', secret), body: 'grant_type=client_credentials' }),
      [401, 'invalid_client'],
    ],
    [
      'Basic with an incomplete escape',
      () => ({ headers: basic(id, `%${secret}`), body: 'grant_type=client_credentials' }),
      [400, 'invalid_request'],
    ],
    ['client_secret in the query', () => ({ query: `?client_secret=${secret}` }), [400, 'invalid_request']],
    ['client_id in the query', () => ({ query: credentials('client_id') }), [400, 'invalid_request']],
    ['grant_type in the query', () => ({ query: credentials('grant_type') }), [400, 'invalid_request']],
    ['scope in the query', () => ({ query: credentials('scope') }), [400, 'invalid_request']],
    ['credentials after a second ?', () => ({ query: '?a=?&client_secret=x' }), [400, 'invalid_request']],
    ['escaped names in the query', () => ({ query: '?client%5Fsecret=x' }), [400, 'invalid_request']],
    ['the whole form in the query', () => ({ query: `?${form()}`, body: '' }), [400, 'invalid_request']],
    ['bytes that are not UTF-8', () => ({ body: Buffer.of(0x67, 0xff, 0xfe) }), [400, 'invalid_request']],
    ['no client_id', () => ({ body: form({ client_id: '-' }) }), [401, 'invalid_client']],
    ['no client_secret', () => ({ body: form({ client_secret: '-' }) }), [401, 'invalid_client']],
    ['an empty client_secret', () => ({ body: form({ client_secret: '' }) }), [401, 'invalid_client']],
  ];
  test.each(BAD)('a token request is refused with %s', async (_name, sent, expected) => {
    expect(await refusal(await send(sent()))).toEqual(expected);
  });

  test('an unknown client, a wrong secret and a disabled client have identical responses', async () => {
    const disabled = await service.client('profile-infos:read');
    const patch = { disabledAt: service.clock.now() };
    await changeClient(service.db.engine.access, disabled.clientId, patch, service.clock);
    service.clock.advance(1_000);
    const rows = [
      { client_id: 'nobody' },
      { client_id: '__proto__' },
      { client_id: id.toUpperCase() },
      { client_secret: `${secret}x` },
      { client_secret: secret.slice(0, -1) },
      { client_secret: secret.toLowerCase() },
      { client_secret: '\0'.repeat(32) },
      { client_id: disabled.clientId, client_secret: disabled.secret },
      { client_id: disabled.clientId, client_secret: 'wrong' },
    ];
    const answers = await Promise.all(
      rows.map(async (row) => comparableResponse(await send({ body: form(row) }))),
    );
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toStartWith('[401,');
    const byBasic = await send({ headers: basic('nobody', 'x'), body: 'grant_type=client_credentials' });
    expect(await comparableResponse(byBasic)).toBe(answers[0] as string);
  });

  test('a wrong secret is refused before the scope is checked', async () => {
    const answer = await send({ body: form({ client_secret: 'wrong', scope: 'nonsense' }) });
    expect(await refusal(answer)).toEqual([401, 'invalid_client']);
  });
});

describe('413', () => {
  const whole = LIMITS.bodyBytesMax;
  const padded = (size: number) => form().padEnd(size, '&');

  test('a token request of exactly 64 KiB is read', async () => {
    expect((await send({ body: padded(whole) })).status).toBe(200);
    expect((await send({ body: inChunks(padded(whole)) })).status).toBe(200);
  });

  test.each([
    ['announced', () => padded(whole + 1)],
    ['in chunks', () => inChunks(padded(whole + 1))],
    ['1 MiB announced', () => padded(2 ** 20)],
    ['1 MiB in chunks', () => inChunks(padded(2 ** 20))],
  ])('a token request over 64 KiB is 413: %s', async (_name, body) => {
    const answer = await send({ body: body() });
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([413, 'no-store']);
  });

  function inChunks(text: string): ReadableStream<Uint8Array> {
    const bytes = new TextEncoder().encode(text);
    return new ReadableStream({
      async start(controller) {
        for (let at = 0; at < bytes.length; at += 16_384) {
          controller.enqueue(bytes.slice(at, at + 16_384));
          await Bun.sleep(0);
        }
        controller.close();
      },
    });
  }
});

test('after a rotation the new secret works at once, and the old one until the end of the overlap', async () => {
  const client = await service.client('profile-infos:read');
  const { access } = service.db.engine;
  const { secret: next } = await rotateSecret(
    access,
    client.clientId,
    { overlapMs: LIMITS.secretOverlapMs },
    service.clock,
  );
  service.clock.advance(1_000);
  const statusOf = async (tried: string) =>
    (await send({ body: form({ client_id: client.clientId, client_secret: tried }) })).status;
  expect([await statusOf(client.secret), await statusOf(next)]).toEqual([200, 200]);
  service.clock.advance(LIMITS.secretOverlapMs - 5_000);
  expect([await statusOf(client.secret), await statusOf(next)]).toEqual([200, 200]);
  service.clock.advance(5_000);
  expect([await statusOf(client.secret), await statusOf(next)]).toEqual([401, 200]);
});

test('a rotation without overlap invalidates the old secret at once', async () => {
  const client = await service.client('profile-infos:read');
  const { secret: next } = await rotateSecret(
    service.db.engine.access,
    client.clientId,
    { overlapMs: 0 },
    service.clock,
  );
  service.clock.advance(1_000);
  const statusOf = async (tried: string) =>
    (await send({ body: form({ client_id: client.clientId, client_secret: tried }) })).status;
  expect([await statusOf(client.secret), await statusOf(next)]).toEqual([401, 200]);
});

test('of two concurrent rotations both new secrets work, and the one before does not', async () => {
  const client = await service.client('profile-infos:read');
  const { access } = service.db.engine;
  const rotate = () =>
    rotateSecret(access, client.clientId, { overlapMs: LIMITS.secretOverlapMs }, service.clock);
  const [one, two] = await Promise.all([rotate(), rotate()]);
  service.clock.advance(1_000);
  const statusOf = async (tried: string) =>
    (await send({ body: form({ client_id: client.clientId, client_secret: tried }) })).status;
  expect(await statusOf(client.secret)).toBe(401);
  expect([await statusOf(one.secret), await statusOf(two.secret)]).toEqual([200, 200]);
});

test('the setting tokenLifetime determines the lifetime of tokens', async () => {
  const brief = await startService({ tokenLifetime: '60' });
  const client = await brief.client('profile-infos:read');
  const answer = await brief.requestGrant(client);
  expect(((await answer.json()) as Granted).expires_in).toBe(60);
});
