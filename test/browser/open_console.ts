import { afterAll, setDefaultTimeout } from 'bun:test';
import type { Flags } from '../../src/config/parse.ts';
import { type Service, startService } from '../support/service.ts';
import { plantShop, type Shop } from './console_service.ts';
import { BROWSER_TEST_MS } from './visits.ts';

/** A service with a shop on it, for as long as the tests of a file run. They have the time that browsers take. */
export async function openShop(
  flags: Flags = {},
): Promise<{ readonly service: Service; readonly shop: Shop }> {
  setDefaultTimeout(BROWSER_TEST_MS);
  const service = await startService({ offline: 'true', ...flags });
  afterAll(() => service.stop());
  return { service, shop: await plantShop(service) };
}
