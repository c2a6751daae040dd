import { describe, test } from 'bun:test';
import { FULL_SCOPE, OFFLINE } from '../support/resource_cases.ts';
import { startService } from '../support/service.ts';
import { createSettingsRealms, createStorefront } from '../support/settings_realms.ts';
import { EPCC } from './recorded/epcc.ts';
import { POSTMAN } from './recorded/postman.ts';
import { replay } from './recorded/recording.ts';
import { TERRAFORM } from './recorded/terraform.ts';

/** Clients that are not on npm, by the requests that they send (docs/clients.md). */

describe.each([EPCC, POSTMAN, TERRAFORM])('$name', async (client) => {
  const values: Record<string, string> = {};

  const service = await startService(OFFLINE);
  const { accounts, member } = await createSettingsRealms(service.db);
  const storefront = await createStorefront(service, accounts);
  const { clientId, secret } = await service.client(`${FULL_SCOPE} settings:read settings:write sign-in`);
  const storefrontId = storefront.clientId;
  Object.assign(values, { origin: service.url, clientId, secret, storefrontId, member });

  // Later uses name what earlier ones created.
  test.each(client.uses.map((use) => [use.title, use] as const))(
    `a service answers every request of ${client.name}: %s`,
    (_, use) => replay(client, use, values),
  );
});
