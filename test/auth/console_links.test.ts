import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { decodeJwt } from 'jose';
import { rotateSigningKey, withdrawSigningKey } from '../../src/auth/keys/signing.ts';
import { createAuditEntry } from '../../src/domain/audit_entry.ts';
import { NIL_UUID, type Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import {
  type ConsoleSession,
  createLink,
  postConsoleToken,
  sameOrigin,
  signIn,
} from '../support/console_sign_in.ts';
import { createFixture, type Fixture, oidcPath, type Service, startService } from '../support/service.ts';
import { compact, openForge } from '../support/token_forge.ts';

/** Way (a) into the console: a link with a one-time code, exchanged for a session. */

setDefaultTimeout(300_000);

let service: Service;
let planted: Fixture;
let neighbour: Fixture;

beforeAll(async () => {
  service = await startService({ badTokenRate: 'off' });
  planted = await createFixture(service.db);
  neighbour = await createFixture(service.db);
});
afterAll(() => service.stop());

const statusOf = async (code: string, headers?: Record<string, string>) =>
  (await postConsoleToken(service, { grant: 'link', code }, headers)).status;

/** The clock of another machine. */
const apart = (milliseconds: number) => ({
  ...service.clock,
  now: () => service.clock.now() + milliseconds,
});

async function acts() {
  const entries = await service.db.engine.log.entries(NIL_UUID, 0, 1_000);
  return entries.map(({ columns }) => columns);
}

describe('a link', () => {
  test('a console link grants its rights for 15 minutes, under its label', async () => {
    const told = await signIn(service, {
      scope: 'oidc-profile-infos:read',
      realms: new Set([planted.realm]),
      label: 'Anna 🙂',
    });
    expect(told).toMatchObject({
      ...{ expires_in: 900, scope: 'oidc-profile-infos:read', realms: [planted.realm] },
      ...{ actor: 'console:Anna 🙂', label: 'Anna 🙂' },
    });
    const { access_token: token } = told;
    const { exp = 0, iat = 0, sub, client_id } = decodeJwt(token);
    expect([exp - iat, sub, client_id]).toEqual([900, 'console:Anna 🙂', 'console:Anna 🙂']);
    expect((await service.get(oidcPath(planted), token)).status).toBe(200);
    expect((await service.get(oidcPath(neighbour), token)).status).toBe(404);
    expect((await service.del(oidcPath(planted), token)).status).toBe(403);
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
  ])('that was made by a clock %s is none', async (_, apartMs) => {
    const { code } = await createLink({ db: service.db, clock: apart(apartMs) });
    expect(await statusOf(code)).toBe(400);
  });

  test.each([LIMITS.clockLeewayMs - 5_000, -LIMITS.clockLeewayMs])(
    'that was made by a clock %p ms ahead, as far as clocks may be apart, is good',
    async (apartMs) => {
      const { code } = await createLink({ db: service.db, clock: apart(apartMs) });
      expect(await statusOf(code)).toBe(200);
    },
  );

  test.each(['', 'x', 'k3Yb0Q6nqv8l1uW9sDZbXA', `${'A'.repeat(22)}`, 'A'.repeat(255), 'ä'.repeat(22)])(
    'that nobody made is none: %p',
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
    expect(JSON.stringify(await acts())).not.toContain(code);
    expect(JSON.stringify(service.log)).not.toContain(code);
  });

  test('of two concurrent requests with one console link one succeeds', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { code } = await createLink(service);
      const statuses = await Promise.all(Array.from({ length: 8 }, () => statusOf(code)));
      expect(statuses.sort()).toEqual([200, ...Array.from({ length: 7 }, () => 400)]);
    }
  });

  test('cannot be for nothing, for admin in some realms, for more realms than a token names, or without a name', async () => {
    const realms = new Set(
      Array.from({ length: LIMITS.tokenRealmsMax + 1 }, () => crypto.randomUUID() as never),
    );
    const wrong = [
      { scope: '' },
      { scope: 'admin', realms: new Set([planted.realm]) },
      { realms },
      { label: ' ' },
      { label: 'a\nb' },
      { label: 'x'.repeat(65) },
    ];
    for (const each of wrong) expect(createLink(service, each)).rejects.toThrow();
  });
});

describe('the page that asks', () => {
  const foreign: [string, () => Record<string, string>][] = [
    ['no Origin', () => ({})],
    ['another origin', () => ({ Origin: 'https://evil.example' })],
    ['no origin at all', () => ({ Origin: 'null' })],
    ['another port', () => ({ Origin: 'http://127.0.0.1:1' })],
    ['another scheme', () => ({ Origin: service.url.replace('http:', 'https:') })],
    ['a name that begins like ours', () => ({ Origin: `${service.url}.evil.example` })],
    ['a site of ours', () => ({ ...sameOrigin(service), 'Sec-Fetch-Site': 'same-site' })],
    ['another site', () => ({ ...sameOrigin(service), 'Sec-Fetch-Site': 'cross-site' })],
    ['nobody', () => ({ ...sameOrigin(service), 'Sec-Fetch-Site': 'none' })],
  ];
  test.each(foreign)('is refused, and the code stays good: %s', async (_name, headers) => {
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
    ['http://localhost', ['http://localhost', 'http://127.0.0.1', 'http://[::1]'], ['http://localhost:80']],
    ['http://127.0.0.1:81', ['http://localhost:81'], ['http://localhost', 'https://127.0.0.1:81']],
  ])('of the base URL %s is one of %j, and none of %j', async (baseUrl, own, foreign) => {
    const named = await startService({ baseUrl });
    const ask = async (Origin: string) => {
      const { code } = await createLink(named);
      return (await postConsoleToken(named, { grant: 'link', code }, { Origin })).status;
    };
    for (const origin of own) expect([origin, await ask(origin)]).toEqual([origin, 200]);
    for (const origin of foreign) expect([origin, await ask(origin)]).toEqual([origin, 403]);
    await named.stop();
  });

  test('need not know Sec-Fetch-Site, and may call this machine by another name', async () => {
    const { port } = new URL(service.url);
    for (const Origin of [service.url, `http://localhost:${port}`, `http://[::1]:${port}`]) {
      expect(await statusOf((await createLink(service)).code, { Origin })).toBe(200);
    }
  });

  test('has no other origin beside it, whichever is listed for CORS', async () => {
    const shop = 'https://shop.example';
    const open = await startService({ corsOrigins: shop });
    try {
      const { code } = await createLink(open);
      const answer = await postConsoleToken(open, { grant: 'link', code }, { Origin: shop });
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([403, null]);
      const preflight = await fetch(`${open.url}/console/token`, {
        method: 'OPTIONS',
        headers: { Origin: shop, 'Access-Control-Request-Method': 'POST' },
      });
      expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([405, null]);
    } finally {
      await open.stop();
    }
  });
});

describe('a session', () => {
  const path = '/console/token';

  test('a console session ends at sign-out', async () => {
    const { access_token: token } = await signIn(service, { scope: 'oidc-profile-infos:read' });
    expect((await service.get(oidcPath(planted), token)).status).toBe(200);
    expect((await service.del(path, token)).status).toBe(403);
    expect((await service.del(path, token, sameOrigin(service))).status).toBe(204);
    service.clock.advance(1_000);
    expect((await service.get(oidcPath(planted), token)).status).toBe(401);
    expect((await service.del(path, token, sameOrigin(service))).status).toBe(401);
  });

  test('a console session ends after 15 minutes', async () => {
    const { access_token: token } = await signIn(service, { scope: 'oidc-profile-infos:read' });
    service.clock.advance(900_000 - 1_000);
    expect((await service.get(oidcPath(planted), token)).status).toBe(200);
    service.clock.advance(LIMITS.clockLeewayMs + 2_000);
    expect((await service.get(oidcPath(planted), token)).status).toBe(401);
  });

  test('ends with the key that signed it, also where it was used before', async () => {
    const { engine, keyring } = service.db;
    const { access_token: token } = await signIn(service, { scope: 'oidc-profile-infos:read' });
    expect((await service.get(oidcPath(planted), token)).status).toBe(200);
    const { keys } = (await (await service.get('/.well-known/jwks.json')).json()) as {
      keys: { kid: string }[];
    };
    await rotateSigningKey(engine.access, keyring, service.clock);
    for (const { kid } of keys) await withdrawSigningKey(kid, engine.access, keyring, service.clock);
    service.clock.advance(1_000);
    expect((await service.get(oidcPath(planted), token)).status).toBe(401);
  });

  test('is no client: a client does not end by it, and looks into none', async () => {
    const client = await service.token('users:read');
    expect((await service.del(path, client, sameOrigin(service))).status).toBe(403);
    const { clientId, secret } = await service.client('users:read');
    const { access_token: token } = await signIn(service);
    const form = { client_id: clientId, client_secret: secret, token };
    const body = new URLSearchParams(form);
    const looked = await fetch(`${service.url}/oauth/introspect`, { method: 'POST', body });
    expect(await looked.json()).toEqual({ active: false });
  });

  test('whose token names no realms, or nobody who may sign in, is none', async () => {
    const forge = await openForge(service);
    const made = (claims: object) =>
      compact(
        JSON.stringify(forge.header()),
        JSON.stringify({ ...forge.claims('console:anna'), ...claims }),
        forge.sign,
      );
    const get = async (claims: object) => (await service.get(oidcPath(planted), await made(claims))).status;
    expect(await get({})).toBe(200);
    expect(await get({ realms: undefined })).toBe(401);
    const nobody = { sub: 'staff:anna', client_id: 'staff:anna' };
    expect(await get(nobody)).toBe(401);
    expect(await get({ sub: 'console:other' })).toBe(401);
    expect(await get({ scope: 'nonsense everything *' })).toBe(403);
  });

  test('stands in the log from its link to its end, and what is done in it too', async () => {
    const told = await signIn(service, {
      label: 'Berta',
      scope: 'oidc-profile-infos:read oidc-profile-infos:write',
    });
    const { access_token: token, actor } = told;
    const gone = await createFixture(service.db);
    expect((await service.del(oidcPath(gone), token)).status).toBe(204);
    await service.del(path, token, sameOrigin(service));
    const jti = decodeJwt(token).jti ?? '';
    const own = (await acts()).filter(({ object }) => object === jti || object === 'Berta');
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

  test('of some realms names them in its entries, as many as a token can', async () => {
    const some = Array.from({ length: LIMITS.tokenRealmsMax }, () => crypto.randomUUID() as Uuid);
    const told = await signIn(service, { label: 'Dora', realms: new Set(some) });
    expect(told.realms).toEqual(some);
    const own = (await acts()).filter(({ actor, object }) => actor === told.actor || object === 'Dora');
    expect(own.map(({ detail }) => JSON.parse(String(detail)).realms)).toEqual([some, some]);
  });

  test('cannot be ended where too many of its name were: 503, and it goes on', async () => {
    const { access } = service.db.engine;
    const { access_token: token, actor: clientId } = await signIn(service, { label: 'Emil' });
    const expiresAt = service.clock.now() + 900_000;
    const auditEntry = createAuditEntry('session.ended', { detail: {} }, service.clock);
    const end = () => access.revokeToken({ jti: crypto.randomUUID(), clientId, expiresAt }, auditEntry);
    // What waits too long for its turn is refused for that, so not all at once.
    for (let ended = 0; ended < LIMITS.revokedTokensPerClientMax; ended += 50)
      await Promise.all(Array.from({ length: 50 }, end));
    expect((await service.withoutRetry.del(path, token, sameOrigin(service))).status).toBe(503);
  });

  test('there are no console sessions when the console is off', async () => {
    const { access_token: token } = await signIn(service, { scope: 'oidc-profile-infos:read' });
    const { code } = await createLink(service);
    const off = await startService({
      ...service.database.flags,
      ...{ noConsole: 'true', baseUrl: service.url },
    });
    try {
      expect((await off.get(oidcPath(planted), token)).status).toBe(401);
      expect((await postConsoleToken(off, { grant: 'link', code }, sameOrigin(service))).status).toBe(404);
      for (const asked of ['/console/ways', '/console/token'])
        expect((await off.get(asked)).status).toBe(404);
      const { paths } = (await (await off.get('/openapi.json')).json()) as { paths: object };
      expect(Object.keys(paths).filter((each) => each.startsWith('/console'))).toEqual([]);
    } finally {
      await off.stop();
    }
  });
});

test('guesses spend what an address may guess, and then a right code waits too', async () => {
  const strict = await startService({ badTokenRate: '3/60' });
  try {
    const { code } = await createLink(strict);
    const ask = async (guess: string) =>
      (await postConsoleToken(strict, { grant: 'link', code: guess })).status;
    for (let guess = 0; guess < 3; guess += 1) expect(await ask('A'.repeat(22))).toBe(400);
    expect([await ask('A'.repeat(22)), await ask(code)]).toEqual([429, 429]);
    // Refused tokens and guessed codes are one budget.
    expect((await strict.get('/v2/authentication-realms', 'none')).status).toBe(429);
  } finally {
    await strict.stop();
  }
});

test('a body that asks for something else is told what to mend', async () => {
  const wrong: [object, string][] = [
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
  for (const [data, rule] of wrong) {
    const answer = await postConsoleToken(service, data);
    const { errors } = (await answer.json()) as { errors: readonly { detail: string }[] };
    expect([answer.status, errors.filter(({ detail }) => detail.startsWith(rule)).length]).toEqual([400, 1]);
  }
});

test('codes that came too late go, where nobody makes another one, when a service starts', async () => {
  const before = await startService();
  await createLink(before);
  await before.stop();
  const { db, stop } = await startService({ ...before.database.flags });
  const count = async () => (await before.database.query('select digest from console_link')).length;
  expect(await count()).toBe(1);
  await db.engine.access.deleteExpiredConsoleLinks(Date.now() + LIMITS.consoleLinkMsMax);
  expect(await count()).toBe(0);
  await stop();
});

test('what is told of a session is what the token says', async () => {
  const told: ConsoleSession = await signIn(service, { scope: 'users:read users:write' });
  expect(told.realms).toBe('*');
  expect(decodeJwt(told.access_token)).toMatchObject({ scope: told.scope, realms: ['*'] });
});
