import { setDefaultTimeout } from 'bun:test';
import type { Flags } from '../../src/app/config/parse.ts';
import { type Service, startService } from '../support/service.ts';
import { BROWSER_TEST_MS } from './console_window.ts';
import { createShop, type Shop } from './shop_fixture.ts';

/** Starts a service with a shop for all tests of a file, and sets their time-out for browsers. */
export async function openShop(
  flags: Flags = {},
): Promise<{ readonly service: Service; readonly shop: Shop }> {
  setDefaultTimeout(BROWSER_TEST_MS);
  const service = await startService({ offline: 'true', ...flags });
  return { service, shop: await createShop(service) };
}
