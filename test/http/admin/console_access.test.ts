import { describe, expect, test } from 'bun:test';
import { decodeJwt } from 'jose';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { ROLES } from '../../../src/model/principal.ts';
import { type ConsoleSession, postConsoleToken, sameOrigin, signIn } from '../../support/console_sign_in.ts';
import { testInProcess } from '../../support/program_service.ts';
import { createFixture, oidcPath } from '../../support/service.ts';
import { startAdminApi } from './admin_api.ts';

/** Invitations to the console, and its sessions, over HTTP. */

const api = await startAdminApi({ badTokenRate: 'off' });
const { service } = api;
const fixture = await createFixture(service.db);
const client = await service.client('admin');

let granted = { token: '', at: Number.NEGATIVE_INFINITY };

/** A token of the client. The clock moves on by days. */
async function adminToken(): Promise<string> {
  const now = service.clock.now();
  if (now - granted.at > 60_000) granted = { token: await service.grant(client), at: now };
  return granted.token;
}

const request: typeof api.request = async (method, path, options = {}) =>
  api.request(method, path, { token: await adminToken(), ...options });

const INVITATION = { name: 'Anna', scopes: ['oidc-profile-infos:read'], realms: [fixture.realm] };

async function invite(data: object = INVITATION) {
  const { status, body } = await request('POST', '/console-links', { data });
  expect(status).toBe(201);
  const { url, ...link } = body.data;
  return { id: link.id, link, code: String(url).split('#code=')[1] ?? '', url };
}

type Item = Readonly<Record<string, unknown>>;

async function listed(path: string): Promise<readonly Item[]> {
  const items: Item[] = [];
  for (let next: string | null | undefined = path; next; ) {
    const { body } = await request('GET', next);
    items.push(...(body.data as unknown as readonly Item[]));
    next = body.links.next;
  }
  return items;
}

const idsIn = async (path: string) => (await listed(path)).map(({ id }) => id);
const entriesOf = async (object: string) => (await listed('/log')).filter((entry) => entry.object === object);
const exchange = (code: string) => postConsoleToken(service, { grant: 'link', code });

async function signInBy(code: string): Promise<ConsoleSession> {
  const answer = await exchange(code);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: ConsoleSession }).data;
}

async function statusOf({ access_token: token }: ConsoleSession): Promise<number> {
  service.clock.advance(1_000);
  return (await service.get(oidcPath(fixture), token)).status;
}

describe('an invitation', () => {
  test('an invitation is listed without its link, signs in once, and is gone', async () => {
    const { id, link, code, url } = await invite();
    expect(url).toBe(`${service.url}/console#code=${code}`);
    expect(link).toEqual({
      id,
      type: 'console_link',
      ...INVITATION,
      expires_at: expect.any(String),
      meta: { created_at: expect.any(String) },
    });
    expect((await request('GET', `/console-links/${id}`)).body.data).toEqual(link as never);
    expect(await listed('/console-links')).toContainEqual(expect.objectContaining(link));
    const session = await signInBy(code);
    expect(session).toMatchObject({ label: 'Anna', actor: 'console:Anna', realms: [fixture.realm] });
    expect(session.scope).toBe('oidc-profile-infos:read');
    expect(session.session_expires_in).toBeWithin(28_790, 28_801);
    expect(await statusOf(session)).toBe(200);
    expect((await exchange(code)).status).toBe(400);
    expect(await idsIn('/console-links')).not.toContain(id);
    expect((await request('GET', `/console-links/${id}`)).status).toBe(404);
  });

  testInProcess('an invitation is exchanged within 24 hours, and not later', async () => {
    const [early, late] = [await invite(), await invite()];
    service.clock.advance(LIMITS.consoleInvitationMsMax - 10_000);
    expect((await exchange(early.code)).status).toBe(200);
    expect(await idsIn('/console-links')).toContain(late.id);
    service.clock.advance(11_000);
    expect((await exchange(late.code)).status).toBe(400);
    expect(await idsIn('/console-links')).not.toContain(late.id);
  });

  test('an invitation with the scope admin begins a session of one hour', async () => {
    const { code } = await invite({ name: 'Berta', scopes: ROLES.everything.scopes, realms: '*' });
    const session = await signInBy(code);
    expect(session.session_expires_in).toBeWithin(3_590, 3_601);
    expect(session.scope.split(' ')).toEqual([...ROLES.everything.scopes]);
  });

  test('a withdrawn invitation signs nobody in, and is withdrawn once', async () => {
    const [withdrawn, other] = [await invite(), await invite()];
    const path = `/console-links/${withdrawn.id}`;
    expect((await request('DELETE', path)).status).toBe(204);
    expect((await exchange(withdrawn.code)).status).toBe(400);
    expect((await request('DELETE', path)).status).toBe(404);
    expect((await exchange(other.code)).status).toBe(200);
  });

  test('of a withdrawal and a sign-in at the same time one has an effect', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { id, code } = await invite();
      const [removal, answer] = await Promise.all([
        request('DELETE', `/console-links/${id}`),
        exchange(code),
      ]);
      expect([
        [204, 400],
        [404, 200],
      ]).toContainEqual([removal.status, answer.status]);
    }
  });

  test('the log has who invited and withdrew whom, with the rights', async () => {
    const { id } = await invite({ ...INVITATION, name: 'Carla' });
    const session = await signIn(service, { scope: 'admin', label: 'Dora' });
    const token = session.access_token;
    await request('POST', '/console-links', { token, data: { ...INVITATION, name: 'Emil' } });
    await request('DELETE', `/console-links/${id}`, { token });
    expect(await entriesOf('Emil')).toMatchObject([
      {
        what: 'console-link.created',
        actor: 'console:Dora',
        address: '127.0.0.1',
        detail: { scope: 'oidc-profile-infos:read', realms: [fixture.realm] },
      },
    ]);
    expect((await entriesOf('Carla')).map(({ what, actor }) => [what, actor])).toEqual([
      ['console-link.created', expect.any(String)],
      ['console-link.withdrawn', 'console:Dora'],
    ]);
  });

  test('the code of an invitation is in no list, log or row', async () => {
    const { code } = await invite();
    const rows = await service.database.query('select * from console_link');
    const texts = [await listed('/console-links'), await entriesOf('Anna'), rows, service.log];
    expect(rows.length).toBeGreaterThan(0);
    for (const text of texts) expect(JSON.stringify(text)).not.toContain(code);
  });

  test.each([
    ['a blank name', { name: ' ' }, 400],
    ['a name of two lines', { name: 'a\nb' }, 400],
    ['a long name', { name: 'x'.repeat(65) }, 400],
    ['no scope', { scopes: [] }, 400],
    ['a role in place of a scope', { scopes: ['everything'] }, 400],
    ['no realm', { realms: [] }, 400],
    ['a realm that does not exist', { realms: [crypto.randomUUID()] }, 422],
    ['admin in one realm', { scopes: ['admin'] }, 422],
  ])('an invitation with %s is rejected', async (_, wrong, status) => {
    const answer = await request('POST', '/console-links', { data: { ...INVITATION, ...wrong } });
    expect([answer.status, answer.body.errors.length]).toEqual([status, 1]);
  });

  test('an invitation to more realms than a token can name is 422', async () => {
    const realms: Uuid[] = [];
    for (let count = 0; count <= LIMITS.tokenRealmsMax; count += 1)
      realms.push((await createFixture(service.db)).realm);
    const answer = await request('POST', '/console-links', { data: { ...INVITATION, realms } });
    expect([answer.status, answer.body.errors[0]?.detail]).toEqual([
      422,
      'data.realms: a console link is limited to at most 32 realms: name fewer realms, or allow all',
    ]);
  });
});

describe('a session of the console', () => {
  const sidOf = (session: ConsoleSession) => String(decodeJwt(session.access_token).sid);
  const end = (session: string) => request('POST', '/console-sessions/end', { data: { session } });
  const begin = (label: string) => signIn(service, { label, scope: 'oidc-profile-infos:read' });

  test('a session is listed with its name, rights, beginning and last use', async () => {
    const session = await begin('Frieda');
    service.clock.advance(2_000);
    const renewedAt = service.clock.now();
    await service.put('/console/token', session.access_token, undefined as never, sameOrigin(service));
    const own = (await listed('/console-sessions')).find(({ id }) => id === sidOf(session));
    expect(own).toEqual({
      id: sidOf(session),
      type: 'console_session',
      ...{ name: 'Frieda', scopes: ['oidc-profile-infos:read'], realms: '*', actor: 'console:Frieda' },
      begun_at: expect.any(String),
      renewed_at: expect.any(String),
      ends_at: expect.any(String),
    });
    expect(Date.parse(String(own?.begun_at))).toBeLessThan(renewedAt);
    expect(Date.parse(String(own?.renewed_at))).toBeGreaterThanOrEqual(renewedAt);
  });

  test('a session that an administrator ends is rejected within a second, and logged', async () => {
    const [ended, other] = [await begin('Gerda'), await begin('Hanna')];
    expect((await end(sidOf(ended))).status).toBe(204);
    expect([await statusOf(ended), await statusOf(other)]).toEqual([401, 200]);
    expect(await idsIn('/console-sessions')).not.toContain(sidOf(ended));
    expect((await entriesOf(sidOf(ended))).map(({ what, actor }) => [what, actor])).toEqual([
      ['session.begun', 'console:Gerda'],
      ['session.ended', expect.stringMatching(/^[0-9a-f-]{36}$/)],
    ]);
    expect((await end(sidOf(ended))).status).toBe(404);
  });

  testInProcess('all sessions are ended together, that of the request and unused ones included', async () => {
    const unused = await begin('Ida');
    // Its token is accepted within the leeway of clocks.
    service.clock.advance(LIMITS.consoleTokenSeconds * 1_000 + LIMITS.clockLeewayMs - 5_000);
    const [own, other] = [await signIn(service, { scope: 'admin', label: 'Jana' }), await begin('Klara')];
    const forged = await begin('Lena');
    await service.database.tamper(
      'update console_session set mac = null where session_id = ?',
      sidOf(forged),
    );
    expect(await idsIn('/console-sessions')).not.toContain(sidOf(forged));
    const token = own.access_token;
    expect((await request('POST', '/console-sessions/end', { token, data: { session: '*' } })).status).toBe(
      204,
    );
    expect(await idsIn('/console-sessions')).toEqual([]);
    for (const each of [unused, own, other, forged]) expect(await statusOf(each)).toBe(401);
    const rows = await service.database.query<{ session_id: string }>(
      'select session_id from console_session',
    );
    expect(rows.map((row) => row.session_id)).not.toContain(sidOf(forged));
    expect((await end('*')).status).toBe(204);
  });

  test.each(['', 'x', '**', `${'a'.repeat(36)}\0`])('the end of the session %j is 400', async (session) => {
    expect((await end(session)).status).toBe(400);
  });
});

test.each(['read', 'support'] as const)(
  'a session with the role %s may neither see nor change who has access',
  async (role) => {
    const { id } = await invite();
    const { access_token: token } = await signIn(service, { scope: ROLES[role].scopes.join(' ') });
    const calls: readonly [string, string, object?][] = [
      ['GET', '/console-links'],
      ['POST', '/console-links', INVITATION],
      ['GET', `/console-links/${id}`],
      ['DELETE', `/console-links/${id}`],
      ['GET', '/console-sessions'],
      ['POST', '/console-sessions/end', { session: '*' }],
    ];
    for (const [method, path, data] of calls) {
      const { status } = await api.request(method, path, { token, ...(data ? { data } : {}) });
      expect([method, path, status]).toEqual([method, path, 403]);
    }
    expect(await idsIn('/console-links')).toContain(id);
  },
);
