import { describe, test } from 'bun:test';
import { startService } from '../support/service.ts';
import { createApplicationKey } from './recorded/application_key.ts';
import { replay } from './recorded/recording.ts';
import { BROWSER_STOREFRONT, SERVER_STOREFRONT } from './recorded/storefronts.ts';

/** All calls of two storefronts with one application key (docs/clients.md). In a browser: test/browser/storefront.sqlite.test.ts. */

const service = await startService();
const key = await createApplicationKey(service);

describe.each([BROWSER_STOREFRONT, SERVER_STOREFRONT])('$name', (storefront) => {
  const values: Record<string, string> = { ...key };

  // Later uses name what earlier ones saved.
  test.each(storefront.uses.map((use) => [use.title, use] as const))(
    `a service answers every request of ${storefront.name} ${storefront.version}: %s`,
    (_, use) => replay(storefront, use, values),
  );
});
