import { afterAll, beforeAll, expect, test } from 'bun:test';
import { gateway, MemoryStorageFactory } from '@elasticpath/js-sdk';
import { type Service, startService } from '../support/service.ts';
import { createSettingsRealms, type SettingsRealms } from '../support/settings_realms.ts';

/** Recorded requests of clients that are not on npm, and clients with input that is refused (docs/clients.md). */

let service: Service;
let realms: SettingsRealms;

beforeAll(async () => {
  service = await startService();
  realms = await createSettingsRealms(service.db);
});
afterAll(() => service.stop());

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (reason: unknown) => reason,
  );

function sdkOf(client_id: string, client_secret: string) {
  return gateway({
    ...{ client_id, client_secret, host: new URL(service.url).host, protocol: 'http' },
    ...{ disableCart: true, storage: new MemoryStorageFactory(), retryDelay: 20, retryJitter: 5 },
  });
}

test('the SDK with a wrong secret gets invalid_client at the settings', async () => {
  const { clientId } = await service.client('settings:read');
  const failure = await failureOf(sdkOf(clientId, 'wrong').AccountAuthenticationSettings.Get());
  expect(failure).toMatchObject({ error: 'invalid_client' });
});

test('the SDK of a client without the account realm gets 404 at the settings', async () => {
  const { clientId, secret } = await service.client('settings:read', new Set([realms.buyers]));
  const failure = await failureOf(sdkOf(clientId, secret).AccountAuthenticationSettings.Get());
  expect(failure).toMatchObject({ errors: [{ status: '404' }] });
});

/** The Terraform provider and the command line, written down from their documented calls. */
test('the Terraform provider reads the settings and destroys a prefix', async () => {
  const token = await service.token('settings:read settings:write');
  const path = '/v2/merchant-realm-mappings';
  const { data } = (await (await service.get(path, token)).json()) as { data: { id: string } };
  const prefix = 'deletedat1700000000000000000';
  const put = await service.put(`${path}/${data.id}`, token, {
    data: { type: 'merchant-realm-mappings', prefix },
  });
  expect([put.status, await put.json()]).toMatchObject([200, { data: { prefix } }]);
  expect((await service.get('/v2/settings/customer-authentication/', token)).status).toBe(200);
});

test('the command line reads the store of its settings', async () => {
  const token = await service.token('settings:read');
  const json = { 'Content-Type': 'application/json' };
  const settings = await service.get('/v2/settings', token, json);
  const { data } = (await settings.json()) as { data: { id: string } };
  expect((await service.get(`/v2/stores/${data.id}`, token, json)).status).toBe(200);
});
