import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
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
  /** Waits for errors that the test provokes and removes them. Throws if there are none. */
  expectError(pattern: RegExp): Promise<void>;
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
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS);
  await page.addInitScript(INIT_SCRIPT);
  const errors = recordErrors(page, new URL(url).origin);
  return {
    page,
    errors,
    async expectError(pattern) {
      const isExpected = (error: string) => pattern.test(error);
      const end = performance.now() + WAIT_MS;
      // The browser may report a failed request after the page has shown it.
      while (!errors.some(isExpected) && performance.now() < end) await Bun.sleep(POLL_MS);
      const others = errors.filter((error) => !isExpected(error));
      if (others.length === errors.length) throw new Error(`no error matches ${pattern}: ${errors}`);
      errors.splice(0, errors.length, ...others);
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
    close: () => context.close(),
  };
}

/** Resolves when the page has been laid out again. */
const NEXT_FRAME = 'new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))';

/** The time-out of a browser test. It ends the shared browser, so single waits time out earlier. */
export const BROWSER_TEST_MS = 300_000;
const WAIT_MS = 60_000;
const POLL_MS = 20;

function recordErrors(page: Page, origin: string): string[] {
  const errors: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) errors.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => errors.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin: target } = new URL(request.url());
    if (protocol !== 'data:' && target !== origin) errors.push(`request to another origin: ${target}`);
  });
  return errors;
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function violationsOf(page: Page): Promise<readonly string[]> {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(AXE);
  const script = `axe.run(document, { runOnly: ${JSON.stringify(RULES)} }).then(({ violations }) => violations)`;
  const violations = (await page.evaluate(script)) as readonly Violation[];
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}
