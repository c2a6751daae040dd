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

export interface Visit {
  readonly page: Page;
  /** Page errors, CSP violations and requests to other origins. */
  readonly troubles: readonly string[];
  /** Waits for errors that the test provokes and removes them. Throws if there are none. */
  expectTrouble(pattern: RegExp): Promise<void>;
  /** Accessibility violations on the current page, found by axe. */
  hindrances(): Promise<readonly string[]>;
  goto(fragment: string): Promise<void>;
  close(): Promise<void>;
}

/** What every hostile script does. */
export const RAN = 'globalThis.scriptsRan = true';

const WATCH = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI));
  globalThis.scriptsRan = false;
  globalThis.alert = () => { ${RAN} };`;

export async function visit(url: string, { viewport, scheme }: View = WIDE): Promise<Visit> {
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
  await page.addInitScript(WATCH);
  const troubles = watch(page, new URL(url).origin);
  return {
    page,
    troubles,
    async expectTrouble(pattern) {
      const isIt = (trouble: string) => pattern.test(trouble);
      const end = performance.now() + WAIT_MS;
      // The browser may report a failed request after the page has shown it.
      while (!troubles.some(isIt) && performance.now() < end) await Bun.sleep(LOOK_MS);
      const kept = troubles.filter((trouble) => !isIt(trouble));
      if (kept.length === troubles.length) throw new Error(`no trouble like ${pattern}: ${troubles}`);
      troubles.splice(0, troubles.length, ...kept);
    },
    hindrances: () => hindrancesOf(page),
    goto: (fragment) => page.goto(`${url}/console${fragment}`).then(() => undefined),
    close: () => context.close(),
  };
}

/** The time-out of a browser test. It ends the shared browser, so single waits time out earlier. */
export const BROWSER_TEST_MS = 300_000;
const WAIT_MS = 60_000;
const LOOK_MS = 20;

function watch(page: Page, origin: string): string[] {
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => troubles.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (protocol !== 'data:' && asked !== origin) troubles.push(`elsewhere: ${asked}`);
  });
  return troubles;
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function hindrancesOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const said = `axe.run(document, { runOnly: ${JSON.stringify(RULES)} }).then(({ violations }) => violations)`;
  const violations = (await page.evaluate(said)) as readonly Violation[];
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}
