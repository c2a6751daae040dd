import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { insertRecord, realmMembers, startService } from '../support/service.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';

/** The settings that clients read first: docs/wire.md#settings. */

const ACCOUNT = '/v2/settings/account-authentication';
const CUSTOMER = '/v2/settings/customer-authentication';
const MAPPINGS = '/v2/merchant-realm-mappings';
const MAPPING = 'merchant-realm-mappings';

const service = await startService();
const installation = await service.db.engine.access.storeId();
const { buyers, merchants, accounts } = await createSettingsRealms(service.db);
const token = await service.token('settings:read settings:write realms:read changes:read');

const bodyOf = async (answer: Response) => [answer.status, await answer.json()] as const;
const read = async (path: string) => bodyOf(await service.get(path, token));
const put = (data: object | string, path = `${MAPPINGS}/${merchants}`) =>
  service.put(path, token, typeof data === 'string' ? data : { data });
const selfOf = (id: Uuid) => ({ self: `${service.url}/v2/authentication-realms/${id}` });

describe('settings', () => {
  test('the settings of account members name their realm, with their defaults', async () => {
    expect(await read(ACCOUNT)).toEqual([
      200,
      {
        data: {
          id: installation,
          type: 'account_authentication_settings',
          enable_self_signup: false,
          auto_create_account_for_account_members: true,
          account_member_self_management: 'disabled',
          account_management_authentication_token_timeout_secs: 86_400,
          relationships: {
            authentication_realm: {
              data: { id: accounts, type: 'authentication_realm', links: selfOf(accounts) },
            },
          },
          meta: { client_id: 'account-management' },
        },
        links: { self: service.url + ACCOUNT },
      },
    ]);
  });

  test('the settings of customers name their realm, with its policy and without top-level links', async () => {
    expect(await read(`${CUSTOMER}/`)).toEqual([
      200,
      {
        data: {
          id: installation,
          type: 'customer-authentication-settings',
          relationships: {
            'authentication-realm': {
              data: {
                id: buyers,
                type: 'authentication-realm',
                links: selfOf(buyers),
                duplicate_email_policy: 'allowed',
              },
            },
          },
          meta: { client_id: 'customers' },
        },
      },
    ]);
  });

  test('the settings and the one store have the ID of the installation', async () => {
    const store = { id: installation, type: 'store', name: 'authrealm' };
    const links = { self: `${service.url}/v2/stores/${installation}` };
    expect(await read('/v2/settings')).toEqual([
      200,
      {
        data: { id: installation, type: 'settings', page_length: 25 },
        links: { self: `${service.url}/v2/settings` },
      },
    ]);
    expect(await read(`/v2/stores/${installation.toUpperCase()}`)).toEqual([200, { data: store, links }]);
    expect(await read('/v2/stores')).toEqual([
      200,
      { data: [{ ...store, links }], links: { self: `${service.url}/v2/stores` } },
    ]);
    expect((await service.get(`/v2/stores/${accounts}`, token)).status).toBe(404);
  });
});

describe('the merchant realm mapping', () => {
  test('exists with the realm, and keeps the prefix that is written', async () => {
    const data = { id: merchants, type: MAPPING, prefix: null, realm_id: merchants, store_id: installation };
    const links = { self: `${service.url}${MAPPINGS}/${merchants}` };
    expect(await read(MAPPINGS)).toEqual([200, { data, links }]);
    expect(await read(`${MAPPINGS}/${merchants}`)).toEqual([200, { data, links }]);
    // What the Terraform provider writes when it destroys a prefix.
    const prefix = 'deletedat1700000000000000000';
    const after = { data: { ...data, prefix }, links };
    expect(await bodyOf(await put({ type: MAPPING, prefix }))).toEqual([200, after]);
    expect(await read(MAPPINGS)).toEqual([200, after]);
  });

  test('the record of its realm does not have the prefix, and its log and feed name the change', async () => {
    expect((await put({ type: MAPPING, prefix: 'shop1' })).status).toBe(200);
    const record = (await read(`/v2/authentication-realms/${merchants}`))[1] as { data: object };
    expect(Object.keys(record.data)).not.toContain('prefix');
    const feed = await read(`/v2/authentication-realms/${merchants}/changes`);
    const { data } = feed[1] as { data: { type: string; data: { members: string[]; record: object } }[] };
    expect(data.at(-1)).toMatchObject({
      type: 'authentication-realm.updated',
      data: { members: ['prefix'], record },
    });
    const admin = await service.token('admin');
    const log = await service.get(`/admin/v1/realms/${merchants}/log`, admin);
    expect(JSON.stringify(await log.json())).toContain('"prefix":"shop1"');
  });

  test.each([
    [{}, ["The field 'prefix' is required."]],
    [{ prefix: null }, ["The field 'prefix' is required."]],
    [{ prefix: 'a' }, ['data.prefix: must be 2 to 255 letters and digits without accents']],
    [{ prefix: 'über' }, ['data.prefix: must be 2 to 255 letters and digits without accents']],
    [{ prefix: 'a'.repeat(256) }, ['data.prefix: must be 2 to 255 letters and digits without accents']],
    [{ prefix: 7 }, ['data.prefix: must be a string']],
    [{ type: 'settings' }, ['data.type: must be merchant-realm-mappings', "The field 'prefix' is required."]],
  ])('a prefix that breaks a rule is 400: %p', async (data, details) => {
    const [status, body] = await bodyOf(await put({ type: MAPPING, ...data }));
    const { errors } = body as { errors: { detail: string }[] };
    expect([status, errors.map(({ detail }) => detail)]).toEqual([400, details]);
  });

  test('another ID is 404 for each method', async () => {
    const data = { type: MAPPING, prefix: 'shop' };
    for (const id of [accounts, systemClock.mintId(), 'none']) {
      expect((await service.get(`${MAPPINGS}/${id}`, token)).status).toBe(404);
      expect((await put(data, `${MAPPINGS}/${id}`)).status).toBe(404);
    }
  });
});

describe('without pre-set realms', () => {
  const origin = (type: string) => ({ data: { id: 'store', type } });

  test('the account realm is the only one of that origin, and customers and merchants have none', async () => {
    const other = await startService();
    const { db } = other;
    const reader = await other.token('settings:read settings:write');
    const statusOf = async (path: string) => (await other.get(path, reader)).status;
    expect(await statusOf(ACCOUNT)).toBe(404);
    const [only, second, customers] = [systemClock.mintId(), systemClock.mintId(), systemClock.mintId()];
    await insertRecord(db, realm, [customers], { ...realmMembers, origin: origin('hello-world') });
    await insertRecord(db, realm, [only], {
      ...realmMembers,
      origin: origin('account_authentication_settings'),
    });
    const body = (await (await other.get(ACCOUNT, reader)).json()) as object;
    expect(body).toMatchObject({
      data: { relationships: { authentication_realm: { data: { id: only } } } },
    });
    await insertRecord(db, realm, [second], {
      ...realmMembers,
      origin: origin('account_authentication_settings'),
    });
    expect(await Promise.all([ACCOUNT, CUSTOMER, MAPPINGS].map(statusOf))).toEqual([404, 404, 404]);
    const data = { type: MAPPING, prefix: 'shop' };
    const absent = await other.put(`${MAPPINGS}/${merchants}`, reader, { data });
    expect(absent.status).toBe(404);
  });

  test('--account-realm names the account realm', async () => {
    const accountRealm = systemClock.mintId();
    const other = await startService({ accountRealm });
    const reader = await other.token('settings:read');
    expect((await other.get(ACCOUNT, reader)).status).toBe(404);
    for (const id of [systemClock.mintId(), accountRealm])
      await insertRecord(other.db, realm, [id], {
        ...realmMembers,
        origin: origin('account_authentication_settings'),
      });
    const body = (await (await other.get(ACCOUNT, reader)).json()) as object;
    expect(body).toMatchObject({
      data: { relationships: { authentication_realm: { data: { id: accountRealm } } } },
    });
  });
});
