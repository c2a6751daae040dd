import { beforeEach, describe, expect, test } from 'bun:test';
import { runImport } from '../support/import_fixtures.ts';
import { errorsOf, startService } from '../support/service.ts';
import { createSettingsRealms } from '../support/settings_realms.ts';

/** PUT of the settings of account members: docs/wire.md#settings. */

const PATH = '/v2/settings/account-authentication';
const TYPE = 'account_authentication_settings';
const CREATE_ACCOUNTS = 'auto_create_account_for_account_members';
const SELF_SIGNUP = 'enable_self_signup';
const SELF_MANAGEMENT = 'account_member_self_management';
const LIFETIME = 'account_management_authentication_token_timeout_secs';

const service = await startService();
const { accounts } = await createSettingsRealms(service.db);
const token = await service.token('settings:read settings:write changes:read realms:read');

interface Settings {
  readonly data: Readonly<Record<string, unknown>>;
}

const put = (data: object) => service.put(PATH, token, { data: { type: TYPE, ...data } });
const read = async () => (await (await service.get(PATH, token)).json()) as Settings;

describe('the settings of account members', () => {
  beforeEach(async () => {
    expect((await put({ [CREATE_ACCOUNTS]: true, [LIFETIME]: 86_400 })).status).toBe(200);
  });

  test('a setting that is written is read, and the other stays', async () => {
    const before = await read();
    const changed = await put({ [LIFETIME]: 60 });
    const body = (await changed.json()) as Settings;
    expect([changed.status, body]).toEqual([200, { ...before, data: { ...before.data, [LIFETIME]: 60 } }]);
    expect(await read()).toEqual(body);
    expect((await put({ [CREATE_ACCOUNTS]: false })).status).toBe(200);
    expect((await read()).data).toEqual({ ...before.data, [LIFETIME]: 60, [CREATE_ACCOUNTS]: false });
  });

  test('of two settings that are written at the same time, both are changed', async () => {
    for (let round = 0; round < 20; round += 1) {
      const settings = { [CREATE_ACCOUNTS]: round % 2 === 0, [LIFETIME]: 60 + round };
      const writes = Object.entries(settings).map(([name, value]) => put({ [name]: value }));
      expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([200, 200]);
      expect((await read()).data).toMatchObject(settings);
    }
  });

  test('the settings as they were read can be written back', async () => {
    const { data } = await read();
    const written = await service.put(PATH, token, { data });
    expect([written.status, ((await written.json()) as Settings).data]).toEqual([200, data]);
  });

  test('a change is in the log and the feed of the realm, and not in its record', async () => {
    expect((await put({ [LIFETIME]: 3_600 })).status).toBe(200);
    const feed = await service.get(`/v2/authentication-realms/${accounts}/changes`, token);
    const { data } = (await feed.json()) as { data: { type: string; data: { members: string[] } }[] };
    expect(data.at(-1)).toMatchObject({
      type: 'authentication-realm.updated',
      data: { members: ['account_settings'] },
    });
    const record = await service.get(`/v2/authentication-realms/${accounts}`, token);
    expect(await record.text()).not.toContain('account_settings');
  });

  test.each([
    [{ [LIFETIME]: 59 }, `data.${LIFETIME}: must be at least 60`],
    [{ [LIFETIME]: 86_401 }, `data.${LIFETIME}: must be at most 86400`],
    [{ [LIFETIME]: 60.5 }, `data.${LIFETIME}: must be a whole number`],
    [{ [LIFETIME]: '60' }, `data.${LIFETIME}: must be a number`],
    [{ [LIFETIME]: null }, `data.${LIFETIME}: must be a number`],
    [{ [CREATE_ACCOUNTS]: 'true' }, `data.${CREATE_ACCOUNTS}: must be true or false`],
    [{ enable_self_signup: 1 }, 'data.enable_self_signup: must be true or false'],
    [
      { account_member_self_management: 'all' },
      'data.account_member_self_management: must be one of disabled, update_only',
    ],
    [{ type: 'settings' }, `data.type: must be ${TYPE}`],
  ])('%p is 400', async (data, detail) => {
    const answer = await put(data);
    expect([answer.status, (await errorsOf(answer)).map((error) => error.detail)]).toEqual([400, [detail]]);
  });

  test('members that manage themselves do not exist: alone, the setting is 422', async () => {
    const before = await read();
    const answer = await put({ [SELF_MANAGEMENT]: 'update_only', [LIFETIME]: 60 });
    const errors = await errorsOf(answer);
    expect([answer.status, errors.map(({ source }) => source?.pointer)]).toEqual([
      422,
      [`/data/${SELF_MANAGEMENT}`],
    ]);
    expect(await read()).toEqual(before);
    expect((await put({ [SELF_MANAGEMENT]: 'disabled' })).status).toBe(200);
  });

  test('with enable_self_signup, as set-up tools send it, it is stored, and can be written back', async () => {
    expect((await read()).data).toMatchObject({ [SELF_SIGNUP]: false, [SELF_MANAGEMENT]: 'disabled' });
    const settings = { [SELF_SIGNUP]: true, [SELF_MANAGEMENT]: 'update_only' };
    expect((await put(settings)).status).toBe(200);
    const { data } = await read();
    expect(data).toMatchObject(settings);
    expect((await service.put(PATH, token, { data })).status).toBe(200);
    expect((await put({ [SELF_SIGNUP]: false })).status).toBe(200);
    expect((await read()).data).toEqual({ ...data, [SELF_SIGNUP]: false });
  });

  test('settings that a realm was stored without have their defaults', async () => {
    const account_settings = { [CREATE_ACCOUNTS]: false };
    const line = { type: 'authentication-realm', id: accounts, name: 'Members', account_settings };
    await runImport(service.db, [line], { isUpsert: true });
    expect((await read()).data).toMatchObject({
      ...account_settings,
      ...{ [LIFETIME]: 86_400, [SELF_SIGNUP]: false, [SELF_MANAGEMENT]: 'disabled' },
    });
  });
});
