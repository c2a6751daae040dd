import { uncachedWindow, type ViewTarget } from './targets.ts';

/**
 * Runs before the scripts of a page: `viewSince(start)` resolves with the milliseconds from `start` until a user is drawn, with
 * the name and at least one link.
 */
export const WATCH_VIEW = `globalThis.viewSince = (start) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error('the user was not drawn')), 15_000);
  const isDrawn = () => ['.facts dd', '.links tbody th'].every(
    (each) => (document.querySelector(each)?.textContent ?? '') !== '');
  const observer = new MutationObserver(() => {
    if (!isDrawn()) return;
    observer.disconnect();
    // After the next frame is painted.
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(performance.now() - start);
      port2.postMessage(undefined);
    });
  });
  observer.observe(document, { childList: true, characterData: true, subtree: true });
});
globalThis.firstView = viewSince(0);
firstView.catch(() => {});`;

/** Times in milliseconds, in order of measurement. */
export interface Views {
  /** By URL, with everything cached. */
  readonly warm: number[];
  /** By URL, with nothing cached. */
  readonly cold: number[];
  /** From another page of the console. */
  readonly fromOtherPage: number[];
}

export interface ViewPlan {
  readonly rounds: number;
  /** Rounds that also measure with nothing cached, each in a new window. */
  readonly coldRounds: number;
  readonly chance: () => number;
}

/** Measures all targets in turn, each time with another user. */
export async function measureViews(
  targets: readonly ViewTarget[],
  plan: ViewPlan,
): Promise<readonly Views[]> {
  const all = targets.map((): Views => ({ warm: [], cold: [], fromOtherPage: [] }));
  // Warm-up.
  for (const target of targets) {
    for (let turn = 0; turn < 3; turn += 1) await warmView(target, target.userAt(plan.chance()));
  }
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const [index, target] of targets.entries()) {
      const user = () => target.userAt(plan.chance());
      all[index]?.warm.push(await warmView(target, user()));
      all[index]?.fromOtherPage.push(await viewFromOtherPage(target, user()));
      if (round < plan.coldRounds) all[index]?.cold.push(await coldView(target, user()));
    }
  }
  return all;
}

const addressOf = ({ url, realm }: ViewTarget, user: string) =>
  `${url}/console#/realms/${realm}/users/${user}`;

async function warmView(target: ViewTarget, user: string): Promise<number> {
  const { page } = target.window;
  await page.goto(`${target.url}/healthz`);
  await page.goto(addressOf(target, user));
  return settledView(target.window, 'firstView');
}

async function viewFromOtherPage(target: ViewTarget, user: string): Promise<number> {
  const { page } = target.window;
  await page.goto(`${target.url}/console#/realms`);
  await page.getByRole('list', { name: 'realms' }).getByRole('link').first().waitFor();
  await page.waitForLoadState('networkidle');
  const fragment = new URL(addressOf(target, user)).hash;
  return settledView(
    target.window,
    `(() => { const start = performance.now(); location.hash = '${fragment}'; return viewSince(start); })()`,
  );
}

async function coldView(target: ViewTarget, user: string): Promise<number> {
  const window = await uncachedWindow(target, WATCH_VIEW);
  await window.page.goto(addressOf(target, user));
  const ms = await settledView(window, 'firstView');
  await window.close();
  return ms;
}

/** The milliseconds that a promise in the page resolves with, once the page is idle. */
async function settledView({ page }: ViewTarget['window'], promise: string): Promise<number> {
  const ms = Number(await page.evaluate(promise));
  await page.waitForLoadState('networkidle');
  return ms;
}

/** The transferred bytes of the scripts that the page has loaded. */
export async function scriptBytes({ page }: ViewTarget['window']): Promise<number> {
  return Number(
    await page.evaluate(`performance.getEntriesByType('resource')
      .filter(({ name }) => name.endsWith('.js')).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`),
  );
}
