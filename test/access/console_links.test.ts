import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { decodeJwt } from 'jose';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import {
  type ConsoleSession,
  createLink,
  postConsoleToken,
  sameOrigin,
  signIn,
} from '../support/console_sign_in.ts';
import { createFixture, oidcPath, startService } from '../support/service.ts';
import { compact, openForge } from '../support/token_forge.ts';

/** Console links: a one-time code in a link is exchanged for a session. */

setDefaultTimeout(300_000);

const service = await startService({ badTokenRate: 'off' });
const fixture = await createFixture(service.db);
const neighbour = await createFixture(service.db);

const statusOf = async (code: string, headers?: Record<string, string>) =>
  (await postConsoleToken(service, { grant: 'link', code }, headers)).status;

/** The clock of a machine with another time. */
const shiftedClock = (milliseconds: number) => ({
  ...service.clock,
  now: () => service.clock.now() + milliseconds,
});

async function installationLog() {
  const entries = await service.db.engine.log.entries(NIL_UUID, 0, 1_000);
  return entries.map(({ columns }) => columns);
}

describe('a link', () => {
  test('a console link grants its rights for 15 minutes, under its label', async () => {
    const session = await signIn(service, {
      scope: 'oidc-profile-infos:read',
      realms: new Set([fixture.realm]),
      label: 'Zoë_1 @desk',
    });
    expect(session).toMatchObject({
      ...{ expires_in: 900, scope: 'oidc-profile-infos:read', realms: [fixture.realm] },
      ...{ actor: 'console:Zoë_1 @desk', label: 'Zoë_1 @desk' },
    });
    const { access_token: token } = session;
    const { exp = 0, iat = 0, sub, client_id } = decodeJwt(token);
    expect([exp - iat, sub, client_id]).toEqual([900, 'console:Zoë_1 @desk', 'console:Zoë_1 @desk']);
    expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
    expect((await service.get(oidcPath(neighbour), token)).status).toBe(404);
    expect((await service.del(oidcPath(fixture), token)).status).toBe(403);
    expect((await service.get('/admin/v1/clients', token)).status).toBe(403);
  });

  test('a console link is used once', async () => {
    const { code } = await createLink(service);
    expect([await statusOf(code), await statusOf(code)]).toEqual([200, 400]);
  });

  test('a console link expires after a minute, and not before', async () => {
    const [early, late] = [await createLink(service), await createLink(service)];
    service.clock.advance(LIMITS.consoleLinkMsMax - 5_000);
    expect(await statusOf(early.code)).toBe(200);
    service.clock.advance(6_000);
    expect(await statusOf(late.code)).toBe(400);
  });

  test.each([
    ['an hour ahead', 3_600_000],
    ['an hour behind', -3_600_000],
    ['further ahead than clocks may be apart', LIMITS.clockLeewayMs + 5_000],
  ])('a console link from a clock %s is 400', async (_, apartMs) => {
    const { code } = await createLink({ db: service.db, clock: shiftedClock(apartMs) });
    expect(await statusOf(code)).toBe(400);
  });

  test.each([LIMITS.clockLeewayMs - 5_000, -LIMITS.clockLeewayMs])(
    'a console link from a clock %p ms ahead, within the leeway, is 200',
    async (apartMs) => {
      const { code } = await createLink({ db: service.db, clock: shiftedClock(apartMs) });
      expect(await statusOf(code)).toBe(200);
    },
  );

  test.each(['', 'x', 'k3Yb0Q6nqv8l1uW9sDZbXA', `${'A'.repeat(22)}`, 'A'.repeat(255), 'ä'.repeat(22)])(
    'an unknown console code is 400: %p',
    async (code) => {
      expect(await statusOf(code)).toBe(400);
    },
  );

  test('a console link is not found by another spelling of its code', async () => {
    const { code } = await createLink(service);
    for (const other of [
      ` ${code}`,
      `${code}=`,
      code.toLowerCase() === code ? code.toUpperCase() : code.toLowerCase(),
    ])
      expect(await statusOf(other)).toBe(400);
    expect(await statusOf(code)).toBe(200);
  });

  test('the code of a console link is not stored in the database', async () => {
    const { code } = await createLink(service);
    const rows = await service.database.query<Record<string, unknown>>('select * from console_link');
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(code);
    await statusOf(code);
    expect(JSON.stringify(await installationLog())).not.toContain(code);
    expect(JSON.stringify(service.log)).not.toContain(code);
  });

  test('of two concurrent requests with one console link one succeeds', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { code } = await createLink(service);
      const statuses = await Promise.all(Array.from({ length: 8 }, () => statusOf(code)));
      expect(statuses.sort()).toEqual([200, ...Array.from({ length: 7 }, () => 400)]);
    }
  });

  test('a console link requires a scope, a label, few enough realms, and no realm limit with admin', async () => {
    const realms = new Set(
      Array.from({ length: LIMITS.tokenRealmsMax + 1 }, () => crypto.randomUUID() as never),
    );
    const invalid = [
      { scope: '' },
      { scope: 'admin', realms: new Set([fixture.realm]) },
      { realms },
      { label: ' ' },
      { label: 'a\nb' },
      { label: 'Anna\u202e' },
      { label: '\u2066Anna' },
      ...['$(id)', '`id`', "a'b", 'a"b', 'a;b', 'a|b', 'a\\b', 'a/b', '🙂'].map((label) => ({ label })),
      { label: 'x'.repeat(65) },
    ];
    for (const each of invalid) expect(createLink(service, each)).rejects.toThrow();
  });
});

describe('the origin of the request', () => {
  const foreign: [string, () => Record<string, string>][] = [
    ['no Origin', () => ({})],
    ['another origin', () => ({ Origin: 'https://evil.example' })],
    ['the origin null', () => ({ Origin: 'null' })],
    ['another port', () => ({ Origin: 'http://127.0.0.1:1' })],
    ['another scheme', () => ({ Origin: service.url.replace('http:', 'https:') })],
    ['a host name that begins like ours', () => ({ Origin: `${service.url}.evil.example` })],
    ['another origin of the same site', () => ({ ...sameOrigin(service), 'Sec-Fetch-Site': 'same-site' })],
    ['another site', () => ({ ...sameOrigin(service), 'Sec-Fetch-Site': 'cross-site' })],
    ['no page', () => ({ ...sameOrigin(service), 'Sec-Fetch-Site': 'none' })],
  ];
  test.each(foreign)('a code from a foreign page is 403 and stays valid: %s', async (_name, headers) => {
    const { code } = await createLink(service);
    expect(await statusOf(code, headers())).toBe(403);
    expect(await statusOf(code)).toBe(200);
  });

  test.each([
    [
      'https://idp.example',
      ['https://idp.example'],
      ['https://localhost', 'http://idp.example', 'https://127.0.0.1'],
    ],
    ['http://localhost', ['http://localhost'], ['http://127.0.0.1', 'http://[::1]', 'http://localhost:80']],
    ['http://127.0.0.1:81', ['http://127.0.0.1:81'], ['http://localhost:81', 'https://127.0.0.1:81']],
  ])('with the base URL %s, codes are accepted from %j and not from %j', async (baseUrl, own, foreign) => {
    const named = await startService({ baseUrl });
    const statusFrom = async (Origin: string) => {
      const { code } = await createLink(named);
      return (await postConsoleToken(named, { grant: 'link', code }, { Origin })).status;
    };
    for (const origin of own) expect([origin, await statusFrom(origin)]).toEqual([origin, 200]);
    for (const origin of foreign) expect([origin, await statusFrom(origin)]).toEqual([origin, 403]);
  });

  test('a code is accepted without Sec-Fetch-Site, and only from the exact origin of the base URL', async () => {
    const { port } = new URL(service.url);
    const statusFrom = async (Origin: string) => statusOf((await createLink(service)).code, { Origin });
    expect(await statusFrom(service.url)).toBe(200);
    for (const host of ['localhost', '[::1]']) expect(await statusFrom(`http://${host}:${port}`)).toBe(403);
  });

  test('a code from a CORS origin is 403', async () => {
    const shop = 'https://shop.example';
    const open = await startService({ corsOrigins: shop });
    const { code } = await createLink(open);
    const answer = await postConsoleToken(open, { grant: 'link', code }, { Origin: shop });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([403, null]);
    const preflight = await fetch(`${open.url}/console/token`, {
      method: 'OPTIONS',
      headers: { Origin: shop, 'Access-Control-Request-Method': 'POST' },
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([405, null]);
  });
});

describe('a session', () => {
  const path = '/console/token';

  test('a console session ends at sign-out', async () => {
    const { access_token: token } = await signIn(service, { scope: 'oidc-profile-infos:read' });
    expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
    expect((await service.del(path, token)).status).toBe(403);
    expect((await service.del(path, token, sameOrigin(service))).status).toBe(204);
    service.clock.advance(1_000);
    expect((await service.get(oidcPath(fixture), token)).status).toBe(401);
    expect((await service.del(path, token, sameOrigin(service))).status).toBe(401);
  });

  test('a console session ends after 15 minutes', async () => {
    const { access_token: token } = await signIn(service, { scope: 'oidc-profile-infos:read' });
    service.clock.advance(900_000 - 1_000);
    expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
    service.clock.advance(LIMITS.clockLeewayMs + 2_000);
    expect((await service.get(oidcPath(fixture), token)).status).toBe(401);
  });

  test('a client token cannot end a session, and a client cannot introspect a session token', async () => {
    const client = await service.token('users:read');
    expect((await service.del(path, client, sameOrigin(service))).status).toBe(403);
    const { clientId, secret } = await service.client('users:read');
    const { access_token: token } = await signIn(service);
    const form = { client_id: clientId, client_secret: secret, token };
    const body = new URLSearchParams(form);
    const introspection = await fetch(`${service.url}/oauth/introspect`, { method: 'POST', body });
    expect(await introspection.json()).toEqual({ active: false });
  });

  test('a session token without realms or a session, or with a subject that is not a console user, is 401', async () => {
    const forge = await openForge(service);
    const sessionToken = (claims: object) =>
      compact(
        JSON.stringify(forge.header()),
        JSON.stringify({ ...forge.claims('console:anna'), sid: 'one', ...claims }),
        forge.sign,
      );
    const get = async (claims: object) =>
      (await service.get(oidcPath(fixture), await sessionToken(claims))).status;
    expect(await get({})).toBe(200);
    expect(await get({ realms: undefined })).toBe(401);
    expect(await get({ sid: undefined })).toBe(401);
    const staff = { sub: 'staff:anna', client_id: 'staff:anna' };
    expect(await get(staff)).toBe(401);
    expect(await get({ sub: 'console:other' })).toBe(401);
    expect(await get({ scope: 'nonsense everything *' })).toBe(403);
  });

  test('a console session is logged from its link to its end, and so are its changes', async () => {
    const session = await signIn(service, {
      label: 'Berta',
      scope: 'oidc-profile-infos:read oidc-profile-infos:write',
    });
    const { access_token: token, actor } = session;
    const gone = await createFixture(service.db);
    expect((await service.del(oidcPath(gone), token)).status).toBe(204);
    await service.del(path, token, sameOrigin(service));
    const { sid } = decodeJwt(token);
    const own = (await installationLog()).filter(({ object }) => object === sid || object === 'Berta');
    expect(own.map(({ action, actor: by }) => [action, by])).toEqual([
      ['console-link.created', 'command line'],
      ['session.begun', actor],
      ['session.ended', actor],
    ]);
    expect(own.at(-1)?.address).toBe('127.0.0.1');
    const details = own.map(({ detail }) => JSON.parse(String(detail)));
    expect(details.map(({ realms }) => realms)).toEqual(['*', '*', undefined]);
    const changes = await service.db.engine.log.entries(gone.realm, 0, 1_000);
    expect(changes.at(-1)?.columns.actor).toBe(actor);
  });

  test('the log entries of a session limited to realms name all of them', async () => {
    const some = Array.from({ length: LIMITS.tokenRealmsMax }, () => crypto.randomUUID() as Uuid);
    const session = await signIn(service, { label: 'Dora', realms: new Set(some) });
    expect(session.realms).toEqual(some);
    const own = (await installationLog()).filter(
      ({ actor, object }) => actor === session.actor || object === 'Dora',
    );
    expect(own.map(({ detail }) => JSON.parse(String(detail)).realms)).toEqual([some, some]);
  });

  test('sign-out ends the session of an actor with as many revoked identifiers as a client may have', async () => {
    const { access } = service.db.engine;
    const { access_token: token, actor: clientId } = await signIn(service, { label: 'Emil' });
    const expiresAt = service.clock.now() + 900_000;
    const auditEntry = createAuditEntry('session.ended', { detail: {} }, service.clock);
    const end = () => access.revokeToken({ jti: crypto.randomUUID(), clientId, expiresAt }, auditEntry);
    // In batches, because requests that wait too long are refused.
    for (let ended = 0; ended < LIMITS.revokedTokensPerClientMax; ended += 50)
      await Promise.all(Array.from({ length: 50 }, end));
    expect((await service.del(path, token, sameOrigin(service))).status).toBe(204);
    expect((await service.put(path, token, undefined as never, sameOrigin(service))).status).toBe(401);
  });

  test('there are no console sessions when the console is off', async () => {
    const { access_token: token } = await signIn(service, { scope: 'oidc-profile-infos:read' });
    const { code } = await createLink(service);
    const off = await startService({
      ...service.database.flags,
      ...{ noConsole: 'true', baseUrl: service.url },
    });
    expect((await off.get(oidcPath(fixture), token)).status).toBe(401);
    expect((await postConsoleToken(off, { grant: 'link', code }, sameOrigin(service))).status).toBe(404);
    for (const path of ['/console/ways', '/console/token']) expect((await off.get(path)).status).toBe(404);
    const { paths } = (await (await off.get('/openapi.json')).json()) as { paths: object };
    expect(Object.keys(paths).filter((each) => each.startsWith('/console'))).toEqual([]);
  });
});

test('wrong codes count against the budget of the address, beyond which a right code is 429', async () => {
  const strict = await startService({ badTokenRate: '3/60' });
  const { code } = await createLink(strict);
  const statusOf = async (guess: string) =>
    (await postConsoleToken(strict, { grant: 'link', code: guess })).status;
  for (let guess = 0; guess < 3; guess += 1) expect(await statusOf('A'.repeat(22))).toBe(400);
  expect([await statusOf('A'.repeat(22)), await statusOf(code)]).toEqual([429, 429]);
  // Refused tokens and wrong codes share a budget.
  expect((await strict.get('/v2/authentication-realms', 'none')).status).toBe(429);
});

test('an invalid body is 400 with the field and its rule', async () => {
  const invalid: [object, string][] = [
    [{}, 'data.grant: '],
    [{ grant: 'password', code: 'x' }, 'data.grant: '],
    [{ grant: 'link' }, 'data.code: is missing'],
    [{ grant: 'link', code: 7 }, 'data.code: '],
    [{ grant: 'link', code: '' }, 'data.code: '],
    [{ grant: 'provider', code: 'x', code_verifier: 'v'.repeat(42) }, 'data.code_verifier: must be 43 '],
    [{ grant: 'provider', code: 'x', code_verifier: ' '.repeat(43) }, 'data.code_verifier: must be 43 '],
    [{ grant: 'provider', code: 'x', nonce: 'n'.repeat(21) }, 'data.nonce: must be 22 '],
    ...['', 'n'.repeat(33)].map((name): [object, string] => [
      { grant: 'provider', code: 'x', name },
      'data.name: must ',
    ]),
    ...['', 'i'.repeat(1_025)].map((iss): [object, string] => [
      { grant: 'provider', code: 'x', iss },
      'data.iss: must ',
    ]),
  ];
  for (const [data, rule] of invalid) {
    const answer = await postConsoleToken(service, data);
    const { errors } = (await answer.json()) as { errors: readonly { detail: string }[] };
    expect([answer.status, errors.filter(({ detail }) => detail.startsWith(rule)).length]).toEqual([400, 1]);
  }
});

test('expired console links are deleted', async () => {
  const before = await startService();
  await createLink(before);
  await before.stop();
  const { db, stop } = await startService({ ...before.database.flags });
  const count = async () => (await before.database.query('select digest from console_link')).length;
  expect(await count()).toBe(1);
  await db.engine.access.deleteExpiredSignIns(Date.now() + LIMITS.consoleLinkMsMax);
  expect(await count()).toBe(0);
  await stop();
});

test('the response to a sign-in has the scope and realms of the token', async () => {
  const session: ConsoleSession = await signIn(service, { scope: 'users:read users:write' });
  expect(session.realms).toBe('*');
  expect(decodeJwt(session.access_token)).toMatchObject({ scope: session.scope, realms: ['*'] });
});
