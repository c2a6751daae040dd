import { afterAll, describe, expect, test } from 'bun:test';
import { openImplicitClients } from '../../src/access/clients/client_credentials.ts';
import { openAuthCache } from '../../src/access/tokens/auth_cache.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { IMPLICIT_SCOPES, SCOPES } from '../../src/model/principal.ts';
import { realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { startAdminApi } from '../http/admin/admin_api.ts';
import { insertRecord, realmMembers, startService } from '../support/service.ts';
import { createStorefront } from '../support/settings_realms.ts';

/** Tokens by the ID of a client alone: docs/guides/clients-and-tokens.md#storefronts. */

const REALM = systemClock.mintId();
const OTHER = systemClock.mintId();
const RIGHTS = {
  name: 'storefront',
  scopes: ['realms:read'],
  realms: '*' as string | readonly string[],
  implicit_scopes: ['settings:read', 'profiles:read'],
  implicit_realms: [REALM as string],
  rate_per_address: '5/60',
};

const api = await startAdminApi({ accountRealm: REALM });
const service = api.service;
for (const id of [REALM, OTHER]) await insertRecord(service.db, realm, [id], realmMembers);
afterAll(() => service.stop());

interface ClientAnswer {
  readonly status: number;
  readonly body: {
    readonly data: { readonly id: string; readonly client_secret: string };
    readonly errors?: readonly { readonly detail: string }[];
  };
}

async function create(data: object = {}): Promise<ClientAnswer> {
  const answer = await api.request('POST', '/clients', { data: { ...RIGHTS, ...data } });
  service.clock.advance(1_000);
  return answer as unknown as ClientAnswer;
}

async function change(id: string, data: object): Promise<ClientAnswer> {
  const answer = await api.request('PUT', `/clients/${id}`, { data });
  service.clock.advance(1_000);
  return answer as unknown as ClientAnswer;
}

const idOf = async (data: object = {}) => (await create(data)).body.data.id;
const from = (address: string) => ({ 'X-Forwarded-For': address });
const ask = (clientId: string, more: Record<string, string> = {}) =>
  service.requestToken({ grant_type: 'implicit', client_id: clientId, ...more });
const refusalOf = async (answer: Response) =>
  [answer.status, ((await answer.json()) as { error: string }).error] as const;

async function tokenOf(granted: Promise<Response>): Promise<string> {
  return ((await (await granted).json()) as { access_token: string }).access_token;
}

const REALMS = '/v2/authentication-realms';
const profilesOf = (id: string) => `${REALMS}/${id}/password-profiles`;
const statusOf = async (path: string, token: string) => (await service.get(path, token)).status;

describe('the ID of a client alone', () => {
  test('gets what the client names for it, and the secret of the same client what it holds', async () => {
    const { status, body } = await create();
    const { id, client_secret: secret } = body.data;
    expect([status, body.data as object]).toEqual([
      201,
      {
        ...{ id, type: 'client', ...RIGHTS, storefronts: [], end_user_address: null, is_disabled: false },
        ...{ previous_secret_expires_at: null, client_secret: secret },
        meta: { created_at: expect.any(String), updated_at: expect.any(String) },
      },
    ]);
    const granted = await ask(id);
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
    const form = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
    const bySecret = await service.requestToken(form);
    expect(await bySecret.json()).toMatchObject({ identifier: 'client_credentials', scope: 'realms:read' });
  });

  test('reads the settings and the profiles of its realms, and no other records', async () => {
    const token = await tokenOf(ask(await idOf({ rate_per_address: '99/60' })));
    expect(await statusOf('/v2/settings/account-authentication', token)).toBe(200);
    expect(await statusOf(profilesOf(REALM), token)).toBe(200);
    expect(await statusOf(profilesOf(OTHER), token)).toBe(404);
    for (const path of [REALMS, `${REALMS}/${REALM}/user-authentication-info`, '/v2/account-members'])
      expect([path, await statusOf(path, token)]).toEqual([path, 403]);
    const profile = { data: { type: 'password_profile', name: 'Passwords' } };
    expect((await service.post(profilesOf(REALM), token, profile)).status).toBe(403);
  });

  test('reaches the named realms of the client where none are named for it', async () => {
    const { body } = await create({ realms: [REALM], implicit_realms: undefined });
    expect(body.data).toMatchObject({ implicit_realms: '*' });
    const token = await tokenOf(ask(body.data.id));
    expect([await statusOf(profilesOf(REALM), token), await statusOf(profilesOf(OTHER), token)]).toEqual([
      200, 404,
    ]);
  });

  test('is counted by address in its own rate, tokens and requests together, and in no other one of the client', async () => {
    const rates = { clientRate: '1/60', grantRate: '1/60', trustedProxies: '127.0.0.1' };
    const limited = await startService(rates);
    const make = () => createStorefront(limited, REALM, { requests: 5, seconds: 60 });
    const [{ clientId: id }, { clientId: another }] = [await make(), await make()];
    const grant = (client_id: string, address: string) =>
      limited.requestToken({ grant_type: 'implicit', client_id }, from(address));
    const token = await tokenOf(grant(id, '192.0.2.10'));
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

  test('has no rate in the networks of its storefront', async () => {
    const limited = await startService({ trustedProxies: '127.0.0.1' });
    const rate = { requests: 2, seconds: 60 };
    const { clientId } = await createStorefront(limited, REALM, rate, ['192.0.2.0/28']);
    const statusesFrom = async (address: string) => {
      const form = { grant_type: 'implicit', client_id: clientId };
      const token = await tokenOf(limited.requestToken(form, from(address)));
      const answers = [0, 1].map(() => limited.get('/v2/settings', token, from(address)));
      return (await Promise.all(answers)).map(({ status }) => status).sort();
    };
    expect(await statusesFrom('192.0.2.15')).toEqual([200, 200]);
    expect(await statusesFrom('192.0.2.16')).toEqual([200, 429]);
  });

  test('is not the last use of the client', async () => {
    const own = await startAdminApi({ accountRealm: REALM });
    const { clientId } = await createStorefront(own.service, REALM);
    const token = await tokenOf(own.service.requestToken({ grant_type: 'implicit', client_id: clientId }));
    expect((await own.service.get('/v2/settings', token)).status).toBe(200);
    const { access } = own.service.db.engine;
    await own.service.server.stop();
    expect((await access.clientUsage()).has(clientId)).toBe(false);
  });

  test('gets nothing by the other grant type, and nothing once the client is disabled', async () => {
    const id = await idOf();
    const form = { grant_type: 'client_credentials', client_id: id };
    expect(await refusalOf(await service.requestToken(form))).toEqual([401, 'invalid_client']);
    const token = await tokenOf(ask(id));
    await api.request('POST', `/clients/${id}/disable`);
    service.clock.advance(1_000);
    expect(await refusalOf(await ask(id))).toEqual([400, 'unsupported_grant_type']);
    expect((await service.get('/v2/settings', token)).status).toBe(401);
  });

  test('of a client that was just created gets a token as soon as the access table may be read again', async () => {
    expect((await ask(systemClock.mintId())).status).toBe(400);
    const { body } = (await api.request('POST', '/clients', { data: RIGHTS })) as unknown as ClientAnswer;
    service.clock.advance(LIMITS.accessTableRecheckMs);
    expect((await ask(body.data.id)).status).toBe(200);
  });

  test('gets no more scopes than the client names for it, though the client holds more', async () => {
    const id = await idOf({ scopes: ['settings:read', 'profiles:read'], implicit_scopes: ['settings:read'] });
    const more = { scope: 'settings:read profiles:read' };
    expect(await refusalOf(await ask(id, more))).toEqual([400, 'invalid_scope']);
  });

  test('is in the log with its rights, which the row authenticates', async () => {
    const id = await idOf({ storefronts: ['192.0.2.0/28'] });
    await ask(id);
    const logged = JSON.stringify(await api.auditEntriesOf(id));
    const rights = `"implicit_scopes":["settings:read","profiles:read"],"implicit_realms":["${REALM}"]`;
    expect(logged).toContain(`${rights},"rate_per_address":"5/60","storefronts":["192.0.2.0/28"]`);
    expect(logged).toContain('"grant":"implicit"');
    const { access } = service.db.engine;
    const [{ implicit = '' } = {}] = await service.database.query<{ implicit: string }>(
      `select implicit from client where client_id = '${id}'`,
    );
    const { clientId } = await service.client('settings:read');
    const forge = (client: string, text: string) =>
      service.database.query(`update client set implicit = ${text} where client_id = '${client}'`);
    for (const text of [`'${implicit.replace('5', '9')}'`, `'{'`]) {
      await forge(id, text);
      expect([text, (await access.client(id))?.isForged]).toEqual([text, true]);
    }
    await forge(clientId, `'${implicit}'`);
    expect((await access.client(clientId))?.isForged).toBe(true);
    await service.database.query('update instance set access_version = access_version + 1');
    service.clock.advance(1_000);
    expect(await refusalOf(await ask(clientId))).toEqual([400, 'unsupported_grant_type']);
  });
});

describe('a token by the ID alone', () => {
  test('loses at the next second what is taken from the ID, whatever the client holds', async () => {
    const scopes = ['settings:read', 'profiles:read'];
    const { id, client_secret: secret } = (await create({ scopes, rate_per_address: '99/60' })).body.data;
    const token = await tokenOf(ask(id));
    const form = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
    const bySecret = await tokenOf(service.requestToken(form));
    const both = async (path: string) => [await statusOf(path, token), await statusOf(path, bySecret)];
    await change(id, { implicit_scopes: ['settings:read'] });
    expect(await both('/v2/settings')).toEqual([200, 200]);
    expect(await both(profilesOf(REALM))).toEqual([403, 200]);
    await change(id, { implicit_scopes: scopes, implicit_realms: [OTHER] });
    expect(await both(profilesOf(REALM))).toEqual([404, 200]);
    await change(id, { implicit_realms: [REALM] });
    expect(await both(profilesOf(REALM))).toEqual([200, 200]);
    await change(id, { implicit_scopes: [] });
    expect(await both('/v2/settings')).toEqual([401, 200]);
  });

  test('shares no principal with a token by the secret that claims the same', async () => {
    // So many realms are not in the token: both claim all that their grant gives.
    const many = Array.from({ length: LIMITS.tokenRealmsMax }, () => systemClock.mintId());
    for (const each of many) await insertRecord(service.db, realm, [each], realmMembers);
    const named = [REALM, ...many];
    const rights = { scopes: ['settings:read', 'profiles:read'], implicit_realms: named };
    const { id, client_secret: secret } = (await create({ ...rights, rate_per_address: '99/60' })).body.data;
    const same = { client_id: id, scope: 'profiles:read' };
    const alone = await tokenOf(ask(id, same));
    const form = { grant_type: 'client_credentials', client_secret: secret, ...same };
    const bySecret = await tokenOf(service.requestToken(form));
    for (const [token, status] of [
      [alone, 404],
      [bySecret, 200],
      [alone, 404],
    ] as const)
      expect(await statusOf(profilesOf(OTHER), token)).toBe(status);
  });

  test('loses a realm with the client', async () => {
    const id = await idOf({ realms: [REALM, OTHER], implicit_realms: [REALM, OTHER] });
    const token = await tokenOf(ask(id));
    expect(await statusOf(profilesOf(OTHER), token)).toBe(200);
    await change(id, { realms: [REALM] });
    expect([await statusOf(profilesOf(REALM), token), await statusOf(profilesOf(OTHER), token)]).toEqual([
      200, 404,
    ]);
  });

  test('is revoked and inspected with the secret of its client', async () => {
    const { id, client_secret: secret } = (await create()).body.data;
    const token = await tokenOf(ask(id));
    const send = (path: string, more: Record<string, string>) =>
      fetch(`${service.url}/oauth/${path}`, {
        method: 'POST',
        body: new URLSearchParams({ client_id: id, token, ...more }),
      });
    for (const path of ['revoke', 'introspect']) {
      const alone = await send(path, { grant_type: 'implicit' });
      expect([path, ...(await refusalOf(alone))]).toEqual([path, 401, 'invalid_client']);
    }
    const inspected = await send('introspect', { client_secret: secret });
    expect(await inspected.json()).toMatchObject({ active: true, scope: 'settings:read profiles:read' });
    expect((await send('revoke', { client_secret: secret })).status).toBe(200);
    service.clock.advance(1_000);
    expect(await statusOf('/v2/settings', token)).toBe(401);
  });
});

describe('grant_type implicit', () => {
  test('is answered alike for an unknown client and for one whose ID alone gives nothing', async () => {
    const { clientId, secret } = await service.client('settings:read');
    const answers = [ask(systemClock.mintId()), ask(clientId), ask(clientId, { client_secret: secret })];
    const texts = (await Promise.all(answers)).map(async (answer) => [answer.status, await answer.text()]);
    const [unknown, known, withSecret] = await Promise.all(texts);
    expect(unknown?.[0]).toBe(400);
    expect([known, withSecret]).toEqual([unknown, unknown] as never);
  });

  test('is refused in the name of the client that exists, and of none otherwise', async () => {
    const { clientId } = await service.client('settings:read');
    const cache = openAuthCache(service.db.engine.access, service.clock, () => undefined);
    const identify = openImplicitClients(cache);
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

describe('a client whose ID alone would give more than it may', () => {
  const detailOf = ({ status, body }: ClientAnswer) => [status, body.errors?.[0]?.detail];

  test('is refused with every scope but those of storefronts', async () => {
    for (const scope of SCOPES.filter((each) => !IMPLICIT_SCOPES.has(each))) {
      const [status, detail] = detailOf(await create({ implicit_scopes: ['settings:read', scope] }));
      expect([scope, status]).toEqual([scope, 422]);
      expect(detail).toStartWith('data.implicit_scopes: ');
    }
  });

  const NO_REALMS = 'data.implicit_realms: the ID alone needs named realms, which the client reaches';
  const NO_RATE = 'data.rate_per_address: the ID alone needs a rate per address';
  test.each([
    [{ implicit_realms: '*' }, NO_REALMS],
    [{ implicit_realms: undefined }, NO_REALMS],
    [{ realms: [OTHER] }, NO_REALMS],
    [{ rate_per_address: null }, NO_RATE],
    [{ rate_per_address: undefined }, NO_RATE],
    [{ implicit_realms: [systemClock.mintId()] }, 'data.implicit_realms.0: is no realm of this installation'],
  ])('%p is refused', async (data, detail) => {
    expect(detailOf(await create(data))).toEqual([422, detail]);
  });

  test.each(['0.0.0.0/0', '::/0', '::/1', '::ffff:0:0/96', '192.0.2.1/24', 'storefront.example', ''])(
    'the network %p is no storefront',
    async (network) => {
      const refused = [
        400,
        'data.storefronts.0: must be an IP address, or a network in CIDR notation that is not all addresses',
      ];
      expect(detailOf(await create({ storefronts: [network] }))).toEqual(refused);
    },
  );

  test('is refused with a rate that is none, no realm, and more than 32 networks', async () => {
    const statusWith = async (data: object) => (await create(data)).status;
    const networks = Array.from({ length: LIMITS.storefrontsMax }, (_, at) => `192.0.2.${at}`);
    expect([LIMITS.storefrontsMax, await statusWith({ storefronts: networks })]).toEqual([32, 201]);
    expect(await statusWith({ storefronts: [...networks, '192.0.2.99'] })).toBe(400);
    expect(await statusWith({ implicit_realms: [] })).toBe(400);
    const refused = [400, 'data.rate_per_address: must be a rate such as 60/60'];
    expect(detailOf(await create({ rate_per_address: '5 a minute' }))).toEqual(refused);
  });

  test('cannot be made by a change, and keeps what the change leaves out', async () => {
    const id = await idOf({ storefronts: ['192.0.2.0/28'] });
    const refused = async (data: object) => (await change(id, data)).status;
    expect(await refused({ implicit_scopes: ['users:read'] })).toBe(422);
    expect(await refused({ realms: [OTHER] })).toBe(422);
    expect(await refused({ implicit_realms: '*' })).toBe(422);
    expect(await refused({ rate_per_address: null })).toBe(422);
    const { body } = await change(id, { rate_per_address: '9/60' });
    const { name, realms, ...implicit } = RIGHTS;
    expect(body.data).toMatchObject({ ...implicit, rate_per_address: '9/60', storefronts: ['192.0.2.0/28'] });
  });
});
