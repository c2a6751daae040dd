import { expect, setDefaultTimeout, test } from 'bun:test';
import { createApplicationKey } from '../clients/recorded/application_key.ts';
import { type RecordedUse, replay, type Send } from '../clients/recorded/recording.ts';
import { BROWSER_STOREFRONT } from '../clients/recorded/storefronts.ts';
import { atEnd } from '../support/ending.ts';
import { isOverloaded, sendWithRetry } from '../support/retry.ts';
import { startService } from '../support/service.ts';
import { sharedBrowser } from './browser.ts';
import { BROWSER_TEST_MS } from './console_window.ts';
import { serveShop } from './shop_pages.ts';

/** A storefront whose page calls the service from another origin (docs/guides/network.md#cors). */

setDefaultTimeout(BROWSER_TEST_MS);

/** Opens the page, and sends requests from it. */
async function openPage(origin: string): Promise<Send> {
  const context = await (await sharedBrowser()).newContext();
  atEnd(() => context.close());
  const page = await context.newPage();
  await page.goto(origin);
  const sendOnce: Send = async (...request) => {
    const { text, ...init } = await page.evaluate(async ([url, init]) => {
      const answer = await fetch(url, init);
      return { status: answer.status, headers: [...answer.headers], text: await answer.text() };
    }, request);
    return new Response(text, init as ResponseInit);
  };
  return (...request) => sendWithRetry(() => sendOnce(...request), isOverloaded);
}

const shop = serveShop();
const service = await startService({ corsOrigins: shop });
const values: Record<string, string> = await createApplicationKey(service);
const send = await openPage(shop);

// Later uses name what earlier ones saved.
test.each(BROWSER_STOREFRONT.uses.map((use) => [use.title, use] as const))(
  'a page of a listed origin calls the service as a storefront does: %s',
  (_, use) => replay(BROWSER_STOREFRONT, use, values, send),
);

test('a page of a listed origin reads the headers of an answer that clients need', async () => {
  const path = '/v2/settings/account-authentication';
  const headers = { Authorization: `Bearer ${values.token}` };
  const answer = await send(service.url + path, { method: 'GET', headers, redirect: 'manual' });
  expect([answer.status, answer.headers.get('x-request-id')]).toEqual([200, expect.any(String)]);
});

test('a page of another origin gets no answer', async () => {
  const stranger = await openPage(serveShop());
  const [first] = BROWSER_STOREFRONT.uses as [RecordedUse];
  await expect(replay(BROWSER_STOREFRONT, first, { ...values }, stranger)).rejects.toThrow(/Failed to fetch/);
});
