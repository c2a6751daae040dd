import { expect, test } from 'bun:test';
import { Fault } from '../../../src/model/fault.ts';
import { findPort } from '../../support/daemons.ts';
import { startService } from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import { errorOf, refusalOf } from './generated_sdk.ts';
import { mappingSdk } from './sdks.ts';

const { createClient, getMerchantRealmMapping, getMerchantRealmMappings, updateMerchantRealmMapping } =
  mappingSdk;

/** The generated SDK of merchant realm mappings, from npm (docs/clients.md). */

const TYPE = 'merchant-realm-mappings';
const SCOPE = 'settings:read settings:write';

const port = String(findPort());
const baseUrl = `http://127.0.0.1:${port}/sso/auth`;
const service = await startService({ port, baseUrl });
const realms = await createSettingsRealms(service.db);

const clientOf = (token: string, url = baseUrl) =>
  createClient({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const update = (client: ReturnType<typeof clientOf>, data: object) =>
  updateMerchantRealmMapping({ client, path: { mapping_id: realms.merchants }, body: { data } });

test('the SDK reads the mapping, changes its prefix and reads it by its ID, at a base URL with a path', async () => {
  const client = clientOf(await service.token(SCOPE));
  const { data: found } = await getMerchantRealmMappings({ client });
  const mapping = { id: realms.merchants, type: TYPE, realm_id: realms.merchants, prefix: null };
  expect(found?.data as unknown).toMatchObject(mapping);
  const { data: changed } = await update(client, { type: TYPE, prefix: 'shop' });
  expect(changed?.data as unknown).toMatchObject({ ...mapping, prefix: 'shop' });
  const path = { mapping_id: realms.merchants };
  expect((await getMerchantRealmMapping({ client, path })).data).toEqual(changed);
});

test('the SDK without a prefix gets 400 in the words that its clients know', async () => {
  const refusal = await refusalOf(update(clientOf(await service.token(SCOPE)), { type: TYPE }));
  expect(refusal).toMatchObject([400, { errors: [{ detail: "The field 'prefix' is required." }] }]);
});

test('the SDK hands on 401 for a wrong token, 403 without the scope, and 404 for a realm outside the list', async () => {
  const wrong = clientOf('wrong');
  expect(await refusalOf(getMerchantRealmMappings({ client: wrong }))).toMatchObject([401, errorOf('401')]);
  const reader = clientOf(await service.token('settings:read'));
  expect(await refusalOf(update(reader, { type: TYPE, prefix: 'shop' }))).toMatchObject([
    403,
    errorOf('403'),
  ]);
  const other = clientOf(await service.token(SCOPE, new Set([realms.buyers])));
  for (const call of [
    getMerchantRealmMappings({ client: other }),
    update(other, { type: TYPE, prefix: 'x1' }),
  ])
    expect(await refusalOf(call)).toMatchObject([404, errorOf('404')]);
});

test('the SDK hands on a 429 and a 503', async () => {
  const limited = await startService({ clientRate: '1/3600' });
  const failing = await startService({}, (engine) => {
    const get: typeof engine.records.get = () => Promise.reject(new Fault('unavailable'));
    return { ...engine, records: { ...engine.records, get } };
  });
  for (const [status, { url, token }] of [
    [429, limited],
    [503, failing],
  ] as const) {
    const client = clientOf(await token(SCOPE), url);
    const refusal = await refusalOf(getMerchantRealmMappings({ client }));
    expect(refusal).toMatchObject([status, errorOf(String(status))]);
  }
});
