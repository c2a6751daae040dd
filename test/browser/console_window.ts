import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page, Request } from 'playwright-core';
import { atEnd } from '../support/ending.ts';
import { sharedBrowser } from './browser.ts';

/** A browser window on the console, which records everything that must not happen in it. */

export const PHONE = { width: 390, height: 844 } as const;
export const DESKTOP = { width: 1440, height: 900 } as const;

export interface View {
  readonly viewport: { readonly width: number; readonly height: number };
  readonly scheme: 'light' | 'dark';
}

export const VIEWS: readonly View[] = [PHONE, DESKTOP].flatMap((viewport) => [
  { viewport, scheme: 'light' } as const,
  { viewport, scheme: 'dark' } as const,
]);

export const WIDE: View = { viewport: DESKTOP, scheme: 'light' };

export interface ConsoleWindow {
  readonly page: Page;
  /** Page errors, CSP violations and requests to other origins. */
  readonly errors: readonly string[];
  /**
   * Waits for errors that the test provokes and removes them, also those of requests that are open. Throws if there are none.
   */
  expectError(pattern: RegExp): Promise<void>;
  /**
   * Waits until the page has sent each search again that was answered 503, and removes these errors. Searches run at the lowest
   * priority, and a busy machine has no time for some. Throws if the page does not send one again.
   */
  searchesAnswered(): Promise<void>;
  /**
   * Waits until an expression of the page is true, and returns its value. `page.waitForFunction` evaluates a text in the page,
   * whose policy forbids it from the second time on.
   */
  until(expression: string): Promise<unknown>;
  /** Resolves when no request but a stream has been open for a moment. */
  settled(): Promise<void>;
  /** Accessibility violations on the current page, found by axe. */
  violations(): Promise<readonly string[]>;
  goto(fragment: string): Promise<void>;
  /** Loads the console again at this fragment, and forgets the errors of the previous page. */
  load(fragment: string): Promise<void>;
  /** Shows the current page in another size and colour scheme. */
  show(view: View): Promise<void>;
  close(): Promise<void>;
}

/** What every hostile script does. */
export const SET_SCRIPTS_RAN = 'globalThis.scriptsRan = true';

const INIT_SCRIPT = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI));
  globalThis.scriptsRan = false;
  globalThis.alert = () => { ${SET_SCRIPTS_RAN} };`;

export async function openWindow(url: string, { viewport, scheme }: View = WIDE): Promise<ConsoleWindow> {
  const browser = await sharedBrowser();
  const context = await browser.newContext({
    viewport,
    colorScheme: scheme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  // Also of windows that the page opens.
  context.setDefaultTimeout(WAIT_MS);
  atEnd(() => context.close());
  return { ...(await openPage(context, url)), close: () => context.close() };
}

/** Opens another tab of the browser of this window, which has no session of its own yet. */
export async function openTab({ page }: ConsoleWindow, url: string): Promise<ConsoleWindow> {
  return openPage(page.context(), url);
}

async function openPage(context: BrowserContext, url: string): Promise<ConsoleWindow> {
  const page = await context.newPage();
  await page.addInitScript(INIT_SCRIPT);
  const errors = recordErrors(page, new URL(url).origin);
  const open = openRequests(page);
  const busySearches = recordBusySearches(page);
  return {
    page,
    errors,
    async expectError(pattern) {
      const isExpected = (error: string) => pattern.test(error);
      // The browser may report a failed request after the page has shown it.
      await poll(() => errors.some(isExpected));
      // Concurrent requests fail for the same reason, one after the other.
      await poll(() => open.size === 0, SETTLE_MS);
      // The browser has reported them when it answers.
      await page.evaluate('0');
      const others = errors.filter((error) => !isExpected(error));
      if (others.length === errors.length) throw new Error(`no error matches ${pattern}: ${errors}`);
      errors.splice(0, errors.length, ...others);
    },
    async searchesAnswered() {
      if (!(await poll(() => busySearches.size === 0)))
        throw new Error(`answered 503, and not sent again: ${[...busySearches]}`);
      errors.splice(0, errors.length, ...errors.filter((error) => !BUSY_SEARCH.test(error)));
    },
    async until(expression) {
      const value = await poll(() => page.evaluate(expression));
      if (!value) throw new Error(`not true in time: ${expression}`);
      return value;
    },
    async settled() {
      let quietAt = performance.now();
      const isQuiet = await poll(() => {
        if (open.size > 0) quietAt = performance.now();
        return performance.now() - quietAt >= QUIET_MS;
      });
      if (!isQuiet) throw new Error('requests remain open');
    },
    violations: () => violationsOf(page),
    goto: (fragment) => page.goto(`${url}/console${fragment}`).then(() => undefined),
    async load(fragment) {
      await page.goto(`${url}/console${fragment}`);
      errors.length = 0;
      await page.reload();
    },
    async show({ viewport, scheme }) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme: scheme });
      await page.evaluate(NEXT_FRAME);
    },
    close: () => page.close(),
  };
}

/** Resolves when the page has been laid out again, and the effects of its components have run. */
export const NEXT_FRAME = 'new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))';

/** The time-out of a browser test. It ends the shared browser, so single waits time out earlier. */
export const BROWSER_TEST_MS = 300_000;
/** For a wait that is most of a test. */
export const LONG_WAIT_MS = 240_000;
const WAIT_MS = 120_000;
const POLL_MS = 20;
const QUIET_MS = 300;
/** How long open requests may take to fail as well: a test may hold some. */
const SETTLE_MS = 2_000;

/** The value of `read` once it is true, or the last one when the time is over. */
async function poll<T>(read: () => T | Promise<T>, ms = WAIT_MS): Promise<T> {
  const end = performance.now() + ms;
  for (;;) {
    const value = await read();
    if (value || performance.now() >= end) return value;
    await Bun.sleep(POLL_MS);
  }
}

function recordErrors(page: Page, origin: string): string[] {
  const errors: string[] = [];
  page.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return;
    const source = message.location().url.endsWith('/search') ? OF_SEARCH : '';
    errors.push(`console: ${message.text()}${source}`);
  });
  page.on('pageerror', (error) => errors.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin: target } = new URL(request.url());
    if (protocol !== 'data:' && target !== origin) errors.push(`request to another origin: ${target}`);
  });
  return errors;
}

/** At the end of an error of a search over all realms. */
const OF_SEARCH = ' of a search';
const BUSY_SEARCH = new RegExp(`status of 503 .*${OF_SEARCH}$`);

/** The searches of the current page that were answered 503, until they are answered otherwise. */
function recordBusySearches(page: Page): ReadonlySet<string> {
  const busy = new Set<string>();
  page.on('response', (response) => {
    if (!response.url().endsWith('/search')) return;
    const search = `${response.url()} ${response.request().postData()}`;
    if (response.status() === 503) busy.add(search);
    else busy.delete(search);
  });
  // The next page does not need the results.
  page.on('framenavigated', () => busy.clear());
  return busy;
}

/** The requests without a complete response, except streams. */
function openRequests(page: Page): ReadonlySet<Request> {
  const open = new Set<Request>();
  page.on('request', (request) => {
    if (request.headers().accept !== 'text/event-stream') open.add(request);
  });
  page.on('requestfinished', (request) => open.delete(request));
  page.on('requestfailed', (request) => open.delete(request));
  return open;
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function violationsOf(page: Page): Promise<readonly string[]> {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(AXE);
  const options = JSON.stringify({ runOnly: RULES, resultTypes: ['violations'] });
  const script = `axe.run(document, ${options}).then(({ violations }) => violations)`;
  const violations = (await page.evaluate(script)) as readonly Violation[];
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}
