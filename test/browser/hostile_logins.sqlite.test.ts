import { expect, setDefaultTimeout, test } from 'bun:test';
import type { BrowserContext, Page } from 'playwright-core';
import { atEnd } from '../support/ending.ts';
import { DISCOVERY } from '../support/issuers.ts';
import { callbackUrl, loginUrl, STATE, startOidcSignIn } from '../support/oidc_sign_in.ts';
import { sharedBrowser } from './browser.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** Pages of other sites, in a browser that signs in through a provider. */

setDefaultTimeout(BROWSER_TEST_MS);

const LOGINS = 1_000;

/** How often the login page of the provider was opened. */
let visits = 0;

/** The pages of the provider and the storefront, and under another name those of another site. */
const pages = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    if (new URL(request.url).pathname === '/authorize') visits += 1;
    return new Response('<!doctype html><title>Page</title>', { headers: { 'Content-Type': 'text/html' } });
  },
});
atEnd(() => pages.stop(true));
const world = await startOidcSignIn();
const { service, provider } = world;
world.describe({ authorization_endpoint: `${pages.url.origin}/authorize` });
const redirect_uri = `${pages.url.origin}/callback`;
await world.setRedirectUris(redirect_uri);
const LOGIN_URL = loginUrl(service.url, world, { redirect_uri });

async function openBrowser(): Promise<BrowserContext> {
  const context = await (await sharedBrowser()).newContext();
  atEnd(() => context.close());
  return context;
}

const cookiesOf = async (context: BrowserContext) =>
  (await context.cookies(service.url)).map(({ name, value }) => `${name}=${value}`);

/** Begins a sign-in in a page. Returns the function with which the provider sends it back. */
async function begin(page: Page) {
  await page.goto(LOGIN_URL);
  const state = new URL(page.url()).searchParams.get('state') ?? '';
  return async () => {
    await page.goto(callbackUrl(service.url, world, { state, code: 'c' }));
    const back = new URL(page.url());
    return { to: back.origin + back.pathname, state: back.searchParams.get('state') };
  };
}

test('a page of another site that has the login URL in 1,000 images changes no cookie of a sign-in', async () => {
  const context = await openBrowser();
  const complete = await begin(await context.newPage());
  const before = await cookiesOf(context);
  expect(before).toHaveLength(1);
  const page = await context.newPage();
  await page.goto(`http://localhost:${pages.port}/`);
  const url = LOGIN_URL.replaceAll('&', '&amp;');
  const images = Array.from({ length: LOGINS }, (_, at) => `<img src="${url}&amp;image=${at}">`);
  const opened = visits;
  // Resolves once each image has loaded or failed.
  await page.setContent(images.join(''), { timeout: BROWSER_TEST_MS });
  expect(visits - opened).toBe(LOGINS);
  expect(await cookiesOf(context)).toEqual(before);
  expect(await complete()).toEqual({ to: redirect_uri, state: STATE });
  expect(await cookiesOf(context)).toEqual([]);
  expect(provider.requestCounts.get(DISCOVERY)).toBeLessThan(10);
});

test('a browser that begins 40 sign-ins has at most 16 cookies, and completes the last', async () => {
  const context = await openBrowser();
  const page = await context.newPage();
  for (let count = 1; count < 40; count += 1) await begin(page);
  const complete = await begin(page);
  expect((await cookiesOf(context)).length).toBeLessThanOrEqual(16);
  expect(await complete()).toEqual({ to: redirect_uri, state: STATE });
});
