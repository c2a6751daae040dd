import type { Page } from 'playwright-core';
import { atEnd } from '../support/ending.ts';
import { sharedBrowser } from './browser.ts';

/** Serves an empty page; returns its origin. */
export function serveShop(): string {
  const headers = { 'Content-Type': 'text/html' };
  const fetch = () => new Response('<!doctype html><title>Shop</title>', { headers });
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch });
  atEnd(() => server.stop(true));
  return server.url.origin;
}

/** A page of an end user, who has signed in nowhere. */
export async function openUserPage(): Promise<Page> {
  const context = await (await sharedBrowser()).newContext({ ignoreHTTPSErrors: true });
  atEnd(() => context.close());
  // Pages of the provider and of clients load fonts.
  await context.route('https://fonts.googleapis.com/**', (route) =>
    route.fulfill({ contentType: 'text/css', body: '' }),
  );
  return context.newPage();
}
