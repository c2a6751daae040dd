import { expect, test } from 'bun:test';
import { startService } from '../../support/service.ts';
import { createSettingsRealms, createStorefront } from '../../support/settings_realms.ts';
import { openJsSdk } from './js_sdk.ts';
import { shopperSdk } from './sdks.ts';

const { createAnAccessToken, getV2AccountMembers, client: shopper } = shopperSdk;

/** What the JavaScript SDK calls around the six resources (docs/clients.md). */

const service = await startService();
const realms = await createSettingsRealms(service.db);

test('the SDK reads the settings and the mapping, and changes its prefix', async () => {
  const sdk = openJsSdk(service.url, await service.client('settings:read settings:write'));
  const settings: unknown = await sdk.AccountAuthenticationSettings.Get();
  expect(settings).toMatchObject({
    data: { relationships: { authentication_realm: { data: { id: realms.accounts } } } },
  });
  const customers: unknown = await sdk.AuthenticationSettings.Get();
  expect(customers).toMatchObject({
    data: { relationships: { 'authentication-realm': { data: { id: realms.buyers } } } },
  });
  const { data } = await sdk.MerchantRealmMappings.All();
  expect(data).toMatchObject({ id: realms.merchants, realm_id: realms.merchants });
  const changed = await sdk.MerchantRealmMappings.Update(data.id, {
    type: 'merchant-realm-mappings',
    prefix: 'shop',
  });
  expect(changed.data.prefix).toBe('shop');
  expect((await sdk.MerchantRealmMappings.Get(data.id)).data).toEqual(changed.data);
});

test('the SDK without a secret gets a token by implicit, and reads the settings and profiles of its realm', async () => {
  const { clientId } = await createStorefront(service, realms.accounts);
  const sdk = openJsSdk(service.url, { clientId });
  const settings: unknown = await sdk.AccountAuthenticationSettings.Get();
  expect(settings).toMatchObject({ data: { meta: { client_id: 'account-management' } } });
  expect((await sdk.PasswordProfile.All(realms.accounts)).data).toEqual([]);
  const users = sdk.UserAuthenticationInfo.All(realms.accounts);
  await expect(users).rejects.toMatchObject({ errors: [{ status: '403' }] });
});

test('the shopper SDK gets a token by implicit, and lists account members with another token', async () => {
  const { clientId } = await createStorefront(service, realms.accounts);
  shopper.setConfig({ baseUrl: service.url });
  const granted = await createAnAccessToken({ body: { grant_type: 'implicit', client_id: clientId } });
  expect(granted.data).toMatchObject({ identifier: 'implicit', expires: expect.any(Number) });
  const token = await service.token('users:read');
  shopper.setConfig({ baseUrl: service.url, headers: { Authorization: `Bearer ${token}` } });
  const { data: members } = await getV2AccountMembers();
  expect(members?.data).toMatchObject([{ id: realms.member, type: 'account_member' }]);
});
