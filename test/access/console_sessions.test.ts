import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { decodeJwt } from 'jose';
import { rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import { endSession } from '../../src/access/sessions/sessions.ts';
import type { StoredSession } from '../../src/access/store/sign_ins.ts';
import type { Flags } from '../../src/app/config/parse.ts';
import { NIL_UUID } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { type ConsoleSession, postConsoleToken, sameOrigin, signIn } from '../support/console_sign_in.ts';
import {
  createKeyPair,
  DISCOVERY,
  issue,
  issuerEntry,
  issuersFile,
  json,
  startIssuer,
} from '../support/issuers.ts';
import { createFixture, oidcPath, type Service, startService } from '../support/service.ts';
import { type Json, openForge } from '../support/token_forge.ts';

/** The renewal of console sessions, and all that ends them. */

setDefaultTimeout(300_000);

const SCOPE = 'oidc-profile-infos:read';
const TOKEN_MS = LIMITS.consoleTokenSeconds * 1_000;
const HOUR_MS = 3_600_000;

type Renewal = Omit<ConsoleSession, 'label'>;

const service = await startService({ badTokenRate: 'off' });
const fixture = await createFixture(service.db);

const renew = (token: string, at: Service = service) =>
  at.withoutRetry.put('/console/token', token, undefined as never, sameOrigin(at));

async function renewed(token: string, at?: Service): Promise<Renewal> {
  const answer = await renew(token, at);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: Renewal }).data;
}

const statusOf = async (token: string, path = oidcPath(fixture)) => (await service.get(path, token)).status;
const sidOf = (token: string) => String(decodeJwt(token).sid);

test('a renewed token has the session, rights and actor of the one before it, which remains valid', async () => {
  const first = await signIn(service, { scope: SCOPE, realms: new Set([fixture.realm]) });
  expect(first.expires_in).toBe(900);
  expect(first.session_expires_in).toBeWithin(28_790, 28_801);
  service.clock.advance(600_000);
  const { access_token: token, session_expires_in: left, ...data } = await renewed(first.access_token);
  expect(data).toEqual({ expires_in: 900, scope: SCOPE, realms: [fixture.realm], actor: first.actor });
  expect(left).toBeWithin(28_190, 28_201);
  expect(sidOf(token)).toBe(sidOf(first.access_token));
  expect(decodeJwt(token).jti).not.toBe(decodeJwt(first.access_token).jti);
  expect([await statusOf(first.access_token), await statusOf(token)]).toEqual([200, 200]);
  service.clock.advance(600_000);
  expect([await statusOf(first.access_token), await statusOf(token)]).toEqual([401, 200]);
});

test('two tabs renew a session at once, and both go on', async () => {
  const { access_token: token } = await signIn(service, { scope: SCOPE });
  const tokens = await Promise.all(Array.from({ length: 4 }, () => renewed(token)));
  for (const each of tokens) expect(await statusOf(each.access_token)).toBe(200);
});

test('a session that is not used for 15 minutes is not renewed', async () => {
  const { access_token: token } = await signIn(service, { scope: SCOPE });
  service.clock.advance(TOKEN_MS + LIMITS.clockLeewayMs + 1_000);
  expect((await renew(token)).status).toBe(401);
});

test.each([
  ['users:read', 8 * HOUR_MS],
  ['users:read admin', HOUR_MS],
])(
  'a session with the scope %s ends %i ms after it began, however often it is renewed',
  async (scope, endMs) => {
    let { access_token: token, session_expires_in: left } = await signIn(service, { scope });
    expect(left).toBeWithin(endMs / 1_000 - 10, endMs / 1_000 + 1);
    const lifetimes: number[] = [];
    for (let elapsed = 0; elapsed < endMs - 600_000; elapsed += 600_000) {
      service.clock.advance(600_000);
      const renewal = await renewed(token);
      ({ access_token: token, session_expires_in: left } = renewal);
      lifetimes.push(renewal.expires_in);
    }
    // The last token ends with the session.
    expect(new Set(lifetimes.slice(0, -1))).toEqual(new Set([900]));
    expect(lifetimes.at(-1)).toBe(left);
    expect(left).toBeWithin(590, 601);
    service.clock.advance(600_000);
    expect((await renew(token)).status).toBe(401);
  },
);

test('a session renewed more often than --grant-rate allows is 429, and another one is renewed', async () => {
  const limited = await startService({ badTokenRate: 'off', grantRate: '2/3600' });
  const [{ access_token: token }, { access_token: other }] = [await signIn(limited), await signIn(limited)];
  const statuses: number[] = [];
  for (const each of [token, token, token, other]) statuses.push((await renew(each, limited)).status);
  expect(statuses).toEqual([200, 200, 429, 200]);
});

test('an ended session is not renewed, and all its tokens are rejected', async () => {
  const { access_token: first } = await signIn(service, { scope: SCOPE });
  const { access_token: second } = await renewed(first);
  expect((await service.del('/console/token', second, sameOrigin(service))).status).toBe(204);
  // Before the process has read that the session ended.
  expect((await renew(first)).status).toBe(401);
  service.clock.advance(1_000);
  expect([await statusOf(first), await statusOf(second), (await renew(first)).status]).toEqual([
    401, 401, 401,
  ]);
});

test('a session that a command ends is in the log, and not in the list', async () => {
  const { access } = service.db.engine;
  const { access_token: token, actor } = await signIn(service, { scope: SCOPE, label: 'Frieda' });
  const open = async () =>
    (await access.consoleSessions(service.clock.now())).filter((session) => session.actor === actor);
  const [session] = await open();
  expect(session).toMatchObject({ sessionId: sidOf(token), scopes: new Set([SCOPE]), realms: '*' });
  await endSession(access, { sessionId: sidOf(token), actor }, service.clock);
  expect(await open()).toEqual([]);
  service.clock.advance(1_000);
  expect([await statusOf(token), (await renew(token)).status]).toEqual([401, 401]);
  const entries = await service.db.engine.log.entries(NIL_UUID, 0, 10_000);
  const own = entries.flatMap(({ columns }) => (columns.object === sidOf(token) ? [columns] : []));
  expect(own.map(({ action, actor: by }) => [action, by])).toEqual([
    ['session.begun', actor],
    ['session.ended', 'command line'],
  ]);
});

test('withdrawing a signing key ends all sessions, also one whose token another key has signed', async () => {
  const { engine, keyring } = service.db;
  const { access_token: token } = await signIn(service, { scope: SCOPE });
  const { kid } = await rotateSigningKey(engine.access, keyring, service.clock);
  await withdrawSigningKey(kid, engine.access, keyring, service.clock);
  service.clock.advance(1_000);
  expect([await statusOf(token), (await renew(token)).status]).toEqual([200, 401]);
  expect(await engine.access.consoleSessions(service.clock.now())).toEqual([]);
});

test('a renewal with the token of a client is 403, with none or a wrong one 401, from another page 403', async () => {
  const { access_token: token } = await signIn(service, { scope: SCOPE });
  const client = await service.token('users:read');
  const forge = await openForge(service);
  const { sid: _, ...claims } = decodeJwt(token);
  const encoded = [forge.header(), claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const signature = Buffer.from(await forge.sign(encoded.join('.'))).toString('base64url');
  const statuses = [client, '', 'nonsense', [...encoded, signature].join('.')].map(
    async (each) => (await renew(each)).status,
  );
  expect(await Promise.all(statuses)).toEqual([403, 401, 401, 401]);
  const foreign = { Origin: 'https://evil.example' };
  expect((await service.put('/console/token', token, undefined as never, foreign)).status).toBe(403);
});

test.each([
  `scopes = 'admin'`,
  `realms = '*'`,
  'ends_at = ends_at + 1',
  'renewed_at = renewed_at + 1',
  `actor = 'console:mallory'`,
  `rules = 'x'`,
  'mac = null',
])('a session whose row was changed in the database is not renewed: %s', async (change) => {
  const { access_token: token } = await signIn(service, { scope: SCOPE, realms: new Set([fixture.realm]) });
  const id = sidOf(token);
  await service.database.tamper(`update console_session set ${change} where session_id = ?`, id);
  expect((await renew(token)).status).toBe(401);
  const logged = service.log.filter((record) => record.event === 'forged_row' && record.id === id);
  expect(logged).toEqual([{ event: 'forged_row', table: 'console_session', id }]);
  const { access } = service.db.engine;
  const own = async () =>
    (await access.consoleSessions(service.clock.now())).filter(({ sessionId }) => sessionId === id);
  const [forged] = await own();
  expect(forged?.isForged).toBe(true);
  await endSession(access, forged as StoredSession, service.clock);
  expect(await own()).toEqual([]);
});

test('sessions that cannot be renewed any more are deleted', async () => {
  const own = await startService();
  const count = async () => (await own.database.query('select session_id from console_session')).length;
  await signIn(own);
  const { deleteExpiredSignIns } = own.db.engine.access;
  const expiry = own.clock.now() + TOKEN_MS + 2 * LIMITS.clockLeewayMs;
  expect([await deleteExpiredSignIns(expiry - 1_000), await count()]).toEqual([0, 1]);
  expect([await deleteExpiredSignIns(expiry + 1_000), await count()]).toEqual([1, 0]);
});

describe('a session by a provider', async () => {
  const NONCE = 'n'.repeat(43);
  const CODE = { grant: 'provider', name: 'acme', code: 'c', code_verifier: 'v'.repeat(43), nonce: NONCE };
  const rule = (value: string, scopes: string, realms: unknown = '*') => ({
    claim: 'groups',
    value,
    scopes,
    realms,
  });
  const console = { client_id: 'console', client_secret: 'a secret' };

  const issuer = await startIssuer();
  const pair = await createKeyPair('one');
  issuer.publish(pair.publicJwk);
  const { issuer: url } = issuer;
  const endpoints = { authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` };
  issuer.routes.set(DISCOVERY, json({ issuer: url, jwks_uri: `${url}/keys`, ...endpoints }));
  const own = [rule('support', `${SCOPE} users:read`), rule('leads', 'users:write')];
  const home = await startWith(own, 'acme', {});

  /** A service with these rights, by default another process of the first one. */
  function startWith(
    rights: readonly object[],
    name = 'acme',
    flags: Flags = { ...home.database.flags, baseUrl: home.url },
  ): Promise<Service> {
    const file = issuersFile(issuerEntry(issuer, { name, rights, console } as Json));
    return startService({
      ...flags,
      badTokenRate: 'off',
      allowPrivate: 'localhost 127.0.0.0/8',
      issuersFile: file,
    });
  }

  async function signInAs(groups: readonly string[]): Promise<ConsoleSession> {
    const now = Math.floor(home.clock.now() / 1_000);
    const times = { iat: now, exp: now + 300 };
    const claims = { iss: issuer.issuer, aud: 'console', sub: 'jane', nonce: NONCE, groups, ...times };
    const idToken = await issue(pair, claims, { typ: 'JWT' });
    issuer.routes.set('/token', json({ access_token: 'x', token_type: 'Bearer', id_token: idToken }));
    const answer = await postConsoleToken(home, CODE);
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { data: ConsoleSession }).data;
  }

  const realm = crypto.randomUUID();
  const CHANGES: [string, readonly object[], readonly string[], string | undefined, unknown][] = [
    ['the same rights', [rule('support', `${SCOPE} users:read`)], ['support'], `${SCOPE} users:read`, '*'],
    ['fewer scopes', [rule('support', SCOPE)], ['support'], SCOPE, '*'],
    ['more scopes', [rule('support', `${SCOPE} users:read admin`)], ['support'], `${SCOPE} users:read`, '*'],
    ['one realm', [rule('support', SCOPE, [realm])], ['support'], SCOPE, [realm]],
    ['no right', [], ['support'], undefined, undefined],
    ['the right of another group', [rule('leads', SCOPE)], ['support'], undefined, undefined],
    ['one of two rights', [rule('leads', 'users:write')], ['support', 'leads'], 'users:write', '*'],
  ];
  test.each(CHANGES)('that the issuers file now gives %s is renewed with what is left', async (...row) => {
    const [, rights, groups, scope, realms] = row;
    const { access_token: token } = await signInAs(groups);
    const changed = await startWith(rights);
    const answer = await changed.withoutRetry.put(
      '/console/token',
      token,
      undefined as never,
      sameOrigin(home),
    );
    expect(answer.status).toBe(scope === undefined ? 401 : 200);
    if (scope !== undefined)
      expect(((await answer.json()) as { data: Renewal }).data).toMatchObject({ scope, realms });
  });

  test('a provider that is removed or replaced ends its sessions', async () => {
    const { access_token: token } = await signInAs(['support']);
    const without = await startWith([rule('support', SCOPE)], 'other');
    const answer = await without.withoutRetry.put(
      '/console/token',
      token,
      undefined as never,
      sameOrigin(home),
    );
    expect(answer.status).toBe(401);
  });

  test('a session by a provider is listed with the name of its person', async () => {
    await signInAs(['support']);
    const answer = await home.get('/admin/v1/console-sessions', await home.token('admin'));
    const { data } = (await answer.json()) as { data: readonly { actor: string; name: string }[] };
    const own = data.filter(({ actor }) => actor.startsWith('acme:'));
    expect(new Set(own.map(({ name }) => name))).toEqual(new Set(['jane']));
  });

  test('no claim of a person is stored in the clear', async () => {
    await signInAs(['support']);
    const rows = JSON.stringify(await home.database.query('select * from console_session'));
    expect(rows).toContain('acme:');
    for (const claim of ['jane', 'support', 'groups']) expect(rows).not.toContain(claim);
  });
});
