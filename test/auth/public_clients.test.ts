import { afterAll, describe, expect, test } from 'bun:test';
import { openPublicClients } from '../../src/auth/clients/client_credentials.ts';
import { createPublicClient } from '../../src/auth/clients/clients.ts';
import { openAuthCache } from '../../src/auth/tokens/auth_cache.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { PUBLIC_SCOPES, parseScopes, SCOPES } from '../../src/domain/principal.ts';
import { realm } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { startAdminApi } from '../http/admin/admin_api.ts';
import { insertRecord, realmMembers, startService } from '../support/service.ts';

/** Clients without a secret: docs/guides/clients-and-tokens.md#public-clients. */

const REALM = systemClock.mintId();
const OTHER = systemClock.mintId();
const RIGHTS = {
  name: 'storefront',
  scopes: ['settings:read', 'profiles:read'],
  realms: [REALM as string],
  is_public: true,
  rate_per_address: '5/60',
};

const api = await startAdminApi({ accountRealm: REALM });
const service = api.service;
for (const id of [REALM, OTHER]) await insertRecord(service.db, realm, [id], realmMembers);
afterAll(() => service.stop());

interface ClientAnswer {
  readonly status: number;
  readonly body: {
    readonly data: { readonly id: string };
    readonly errors?: readonly { readonly detail: string }[];
  };
}

async function create(data: object = {}): Promise<ClientAnswer> {
  const answer = await api.request('POST', '/clients', { data: { ...RIGHTS, ...data } });
  service.clock.advance(1_000);
  return answer as ClientAnswer;
}

const idOf = async (data: object = {}) => (await create(data)).body.data.id;
const from = (address: string) => ({ 'X-Forwarded-For': address });
const ask = (clientId: string, more: Record<string, string> = {}) =>
  service.requestToken({ grant_type: 'implicit', client_id: clientId, ...more });
const refusalOf = async (answer: Response) =>
  [answer.status, ((await answer.json()) as { error: string }).error] as const;

async function tokenOf(clientId: string): Promise<string> {
  const answer = await ask(clientId);
  return ((await answer.json()) as { access_token: string }).access_token;
}

describe('a public client', () => {
  test('has no secret, and gets a token by its ID alone', async () => {
    const { status, body } = await create();
    expect([status, body.data as object]).toEqual([
      201,
      {
        ...{ id: body.data.id, type: 'client', ...RIGHTS, end_user_address: null, is_disabled: false },
        previous_secret_expires_at: null,
        meta: { created_at: expect.any(String), updated_at: expect.any(String) },
      },
    ]);
    const granted = await ask(body.data.id);
    expect([granted.status, await granted.json()]).toEqual([
      200,
      {
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: 3600,
        expires: expect.any(Number),
        identifier: 'implicit',
        scope: 'settings:read profiles:read',
      },
    ]);
  });

  test('reads the settings and the profiles of its realms, and no other records', async () => {
    const token = await tokenOf(await idOf({ rate_per_address: '99/60' }));
    const statusOf = async (path: string) => (await service.get(path, token)).status;
    const realms = '/v2/authentication-realms';
    expect(await statusOf('/v2/settings/account-authentication')).toBe(200);
    expect(await statusOf(`${realms}/${REALM}/password-profiles`)).toBe(200);
    expect(await statusOf(`${realms}/${OTHER}/password-profiles`)).toBe(404);
    for (const path of [realms, `${realms}/${REALM}/user-authentication-info`, '/v2/account-members'])
      expect([path, await statusOf(path)]).toEqual([path, 403]);
    const profile = { data: { type: 'password_profile', name: 'Passwords' } };
    expect((await service.post(`${realms}/${REALM}/password-profiles`, token, profile)).status).toBe(403);
  });

  test('is counted by address in its own rate, tokens and requests together, and in no other one of a client', async () => {
    const rates = { clientRate: '1/60', grantRate: '1/60', trustedProxies: '127.0.0.1' };
    const limited = await startService(rates);
    const rights = {
      scopes: PUBLIC_SCOPES,
      realms: new Set<Uuid>([REALM]),
      ratePerAddress: { requests: 5, seconds: 60 },
    };
    const make = () => createPublicClient(limited.db.engine.access, 'x', rights, limited.clock);
    const [{ clientId: id }, { clientId: another }] = [await make(), await make()];
    const grant = (client_id: string, address: string) =>
      limited.requestToken({ grant_type: 'implicit', client_id }, from(address));
    const { access_token: token } = (await (await grant(id, '192.0.2.10')).json()) as {
      access_token: string;
    };
    const statuses: number[] = [];
    for (let count = 0; count < 5; count += 1)
      statuses.push((await limited.get('/v2/settings', token, from('192.0.2.10'))).status);
    expect(statuses).toEqual([200, 200, 200, 200, 429]);
    const refused = await grant(id, '192.0.2.10');
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, 12]);
    expect((await limited.get('/v2/settings', token, from('192.0.2.11'))).status).toBe(200);
    expect((await grant(id, '192.0.2.11')).status).toBe(200);
    // Another client has a rate of its own at the same address.
    expect((await grant(another, '192.0.2.10')).status).toBe(200);
  });

  test('is rejected without its own grant type, and when it is disabled or deleted', async () => {
    const id = await idOf();
    const form = { grant_type: 'client_credentials', client_id: id };
    expect(await refusalOf(await service.requestToken(form))).toEqual([401, 'invalid_client']);
    const secret = { ...form, client_secret: 'a secret that nobody was given' };
    expect(await refusalOf(await service.requestToken(secret))).toEqual([401, 'invalid_client']);
    const token = await tokenOf(id);
    await api.request('POST', `/clients/${id}/disable`);
    service.clock.advance(1_000);
    expect(await refusalOf(await ask(id))).toEqual([400, 'unsupported_grant_type']);
    expect((await service.get('/v2/settings', token)).status).toBe(401);
  });

  test('that was just created gets a token as soon as the access table may be read again', async () => {
    expect((await ask(systemClock.mintId())).status).toBe(400);
    const { body } = (await api.request('POST', '/clients', { data: RIGHTS })) as ClientAnswer;
    service.clock.advance(LIMITS.accessTableRecheckMs);
    expect((await ask(body.data.id)).status).toBe(200);
  });

  test('gets no more scopes than it holds', async () => {
    const id = await idOf({ scopes: ['settings:read'] });
    const more = { scope: 'settings:read profiles:read' };
    expect(await refusalOf(await ask(id, more))).toEqual([400, 'invalid_scope']);
  });

  test('is in the log with its rate, and its row is authenticated', async () => {
    const id = await idOf();
    expect(JSON.stringify(await api.auditEntriesOf(id))).toContain('"rate_per_address":"5/60"');
    await service.database.query(`update client set rate_per_address = '99999/1' where client_id = '${id}'`);
    await service.database.query('update instance set access_version = access_version + 1');
    service.clock.advance(1_000);
    expect(await refusalOf(await ask(id))).toEqual([400, 'unsupported_grant_type']);
  });
});

describe('grant_type implicit', () => {
  test('is answered alike for an unknown client and for one with a secret', async () => {
    const { clientId, secret } = await service.client('settings:read');
    const answers = [ask(systemClock.mintId()), ask(clientId), ask(clientId, { client_secret: secret })];
    const texts = (await Promise.all(answers)).map(async (answer) => [answer.status, await answer.text()]);
    const [unknown, confidential, withSecret] = await Promise.all(texts);
    expect(unknown?.[0]).toBe(400);
    expect([confidential, withSecret]).toEqual([unknown, unknown] as never);
  });

  test('is refused in the name of the client that exists, and of none otherwise', async () => {
    const { clientId } = await service.client('settings:read');
    const cache = openAuthCache(service.db.engine.access, service.clock, () => undefined);
    const identify = openPublicClients(cache);
    const refused = { kind: 'refused', code: 'unsupported_grant_type' } as const;
    const identified = await identify({ clientId, clientSecret: undefined });
    expect(identified).toMatchObject({ ...refused, clientId });
    const unknown = await identify({ clientId: 'nobody', clientSecret: undefined });
    expect([unknown, 'clientId' in unknown]).toMatchObject([refused, false]);
  });

  test('needs a client ID, and is in the metadata', async () => {
    expect(await refusalOf(await service.requestToken({ grant_type: 'implicit' }))).toEqual([
      400,
      'invalid_request',
    ]);
    const metadata = await (await service.get('/.well-known/oauth-authorization-server')).json();
    expect(metadata).toMatchObject({
      grant_types_supported: ['client_credentials', 'implicit'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
    });
  });
});

describe('a public client that asks for more than it may have', () => {
  const detailOf = ({ status, body }: ClientAnswer) => [status, body.errors?.[0]?.detail];

  test('every scope but those of public clients is refused', async () => {
    for (const scope of SCOPES.filter((each) => !PUBLIC_SCOPES.has(each))) {
      const [status, detail] = detailOf(await create({ scopes: ['settings:read', scope] }));
      expect([scope, status]).toEqual([scope, 422]);
      expect(detail).toStartWith('data.scopes: ');
    }
  });

  test.each([
    [{ realms: '*' }, 'data.realms: a public client needs named realms'],
    [{ rate_per_address: null }, 'data.rate_per_address: is required for a public client'],
    [{ rate_per_address: undefined }, 'data.rate_per_address: is required for a public client'],
    [{ is_public: false }, 'data.rate_per_address: is for public clients only'],
    [{ end_user_address: 'required' }, 'data.end_user_address: a public client is called by end users'],
    [{ end_user_address: 'none' }, 'data.end_user_address: a public client is called by end users'],
  ])('%p is refused', async (data, detail) => {
    expect(detailOf(await create(data))).toEqual([422, detail]);
  });

  test('a rate that is none is refused', async () => {
    const refused = [400, 'data.rate_per_address: must be a rate such as 60/60'];
    expect(detailOf(await create({ rate_per_address: '5 a minute' }))).toEqual(refused);
  });

  test('it cannot get more, a secret, or another kind by a change', async () => {
    const id = await idOf();
    const change = async (data: object) =>
      detailOf((await api.request('PUT', `/clients/${id}`, { data })) as ClientAnswer);
    expect((await change({ scopes: ['users:read'] }))[0]).toBe(422);
    expect((await change({ realms: '*' }))[0]).toBe(422);
    expect((await change({ rate_per_address: null }))[0]).toBe(422);
    expect((await change({ rate_per_address: '9/60' }))[0]).toBe(200);
    expect((await api.request('POST', `/clients/${id}/rotate`, { data: {} })).status).toBe(422);
    const confidential = (await api.request('POST', '/clients', {
      data: { name: 'shop', scopes: ['settings:read'], realms: [REALM] },
    })) as ClientAnswer;
    const made = { data: { rate_per_address: '9/60' } };
    expect((await api.request('PUT', `/clients/${confidential.body.data.id}`, made)).status).toBe(422);
  });

  test('the program itself creates none with more', async () => {
    const rights = {
      scopes: parseScopes('users:read') ?? new Set<string>(),
      realms: new Set<Uuid>([REALM]),
      ratePerAddress: { requests: 1, seconds: 1 },
    };
    const creating = createPublicClient(service.db.engine.access, 'x', rights, systemClock);
    await expect(creating).rejects.toThrow('conflict');
  });
});
