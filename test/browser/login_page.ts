import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { installClientLibrary } from '../support/client_library.ts';
import { findPort } from '../support/daemons.ts';
import { type RunningCommand, startCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';
import { openWindow } from './console_window.ts';

/** The example of docs/guides/login-page.md, in its own process, with a browser. */

const EXAMPLE = fileURLToPath(new URL('../../examples/login_page/server.mjs', import.meta.url));

interface LoginPage {
  readonly url: string;
  readonly running: RunningCommand;
}

/** Copies the example into a folder with the client library. The result starts it there, and returns once it listens. */
export async function installLoginPage() {
  const folder = freshFolder();
  await installClientLibrary(folder);
  copyFileSync(EXAMPLE, join(folder, 'server.mjs'));
  return async (runtime: string, environment: Record<string, string>): Promise<LoginPage> => {
    const port = String(findPort());
    const running = startCommand([runtime, join(folder, 'server.mjs')], { PORT: port, ...environment });
    await running.line(/^listening on /);
    return { url: `http://localhost:${port}`, running };
  };
}

/** Presses a button, and returns once the next page is shown. */
export async function press(page: Page, name: string): Promise<void> {
  const loaded = page.waitForEvent('load');
  await page.getByRole('button', { name, exact: true }).click();
  await loaded;
}

const UNAVAILABLE = 'Sign-in is not available';

/** Whether the machine was too busy for a password. */
export const isBusy = async (page: Page) =>
  (await page.getByRole('alert').filter({ hasText: UNAVAILABLE }).count()) > 0;

export async function typePassword(page: Page, username: string, password: string): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(password);
  await press(page, 'Sign in');
}

export const signedIn = (page: Page) => page.getByRole('heading', { name: 'Welcome' }).waitFor();
export const noteOf = (page: Page, words: string) =>
  page.getByRole('alert').filter({ hasText: words }).waitFor();

/** Opens the page in a browser without cookies. */
export async function openPage(url: string): Promise<Page> {
  const { page } = await openWindow(url);
  await page.goto(url);
  return page;
}
