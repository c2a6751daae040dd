import { type Station, strangeWindow } from './targets.ts';

/**
 * In a page, before anything of it: `viewSince(start)` resolves with the milliseconds from there until the picture of a
 * user, their name and a link at least, is drawn.
 */
export const WATCH_VIEW = `globalThis.viewSince = (start) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error('no picture of a user came')), 15_000);
  const isDrawn = () => ['.picture-user .tile-name', '.picture-links .tile-name'].every(
    (each) => (document.querySelector(each)?.textContent ?? '') !== '');
  const observer = new MutationObserver(() => {
    if (!isDrawn()) return;
    observer.disconnect();
    // Before the next frame, and behind it.
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

/** Milliseconds, in the order they were seen. */
export interface Views {
  /** By an address, in a tab that has been there before. */
  readonly warm: number[];
  /** By an address, with nothing cached. */
  readonly cold: number[];
  /** From another page of the console. */
  readonly within: number[];
}

export interface ViewPlan {
  readonly rounds: number;
  /** Rounds with nothing cached, which take a new window each. */
  readonly coldRounds: number;
  readonly chance: () => number;
}

/** The views of all stations, in turn, each of another user. */
export async function measureViews(stations: readonly Station[], plan: ViewPlan): Promise<readonly Views[]> {
  const all = stations.map((): Views => ({ warm: [], cold: [], within: [] }));
  // What is compiled and cached once.
  for (const station of stations) {
    for (let turn = 0; turn < 3; turn += 1) await warmView(station, station.userAt(plan.chance()));
  }
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const [index, station] of stations.entries()) {
      const user = () => station.userAt(plan.chance());
      all[index]?.warm.push(await warmView(station, user()));
      all[index]?.within.push(await viewWithin(station, user()));
      if (round < plan.coldRounds) all[index]?.cold.push(await coldView(station, user()));
    }
  }
  return all;
}

const addressOf = ({ url, realm }: Station, user: string) => `${url}/console#/realms/${realm}/users/${user}`;

async function warmView(station: Station, user: string): Promise<number> {
  const { page } = station.window;
  await page.goto(`${station.url}/healthz`);
  await page.goto(addressOf(station, user));
  return settledView(station.window, 'firstView');
}

async function viewWithin(station: Station, user: string): Promise<number> {
  const { page } = station.window;
  await page.goto(`${station.url}/console#/realms`);
  await page.getByRole('list', { name: 'realms' }).getByRole('link').first().waitFor();
  await page.waitForLoadState('networkidle');
  const fragment = new URL(addressOf(station, user)).hash;
  return settledView(
    station.window,
    `(() => { const start = performance.now(); location.hash = '${fragment}'; return viewSince(start); })()`,
  );
}

async function coldView(station: Station, user: string): Promise<number> {
  const window = await strangeWindow(station, WATCH_VIEW);
  await window.page.goto(addressOf(station, user));
  const ms = await settledView(window, 'firstView');
  await window.close();
  return ms;
}

/** Milliseconds that a promise of the page answers, once nothing of this view is left to do. */
async function settledView({ page }: Station['window'], promise: string): Promise<number> {
  const ms = Number(await page.evaluate(promise));
  await page.waitForLoadState('networkidle');
  return ms;
}

/** The bytes of script that a page of the user has loaded, as they came over the wire. */
export async function scriptBytes({ page }: Station['window']): Promise<number> {
  return Number(
    await page.evaluate(`performance.getEntriesByType('resource')
      .filter(({ name }) => name.endsWith('.js')).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`),
  );
}
