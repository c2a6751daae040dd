import type { Page } from 'playwright-core';
import type { ViewTarget } from './targets.ts';

/** Runs in a page: `watchFrames()` observes every frame of a long list until the returned function is called. */
export const WATCH_FRAMES = `globalThis.watchFrames = () => {
  const seen = { gapMs: 0, rows: 0 };
  let last = performance.now();
  let isOver = false;
  const look = (now) => {
    if (isOver) return;
    seen.gapMs = Math.max(seen.gapMs, now - last);
    last = now;
    seen.rows = document.querySelectorAll('.long-list li').length;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  return () => {
    isOver = true;
    // A page that was blocked until now has had no frame to record it.
    seen.gapMs = Math.max(seen.gapMs, performance.now() - last);
    return seen;
  };
};`;

/** Measurements of a list while it was scrolled for some seconds. */
export interface ScrollSample {
  /** The longest time between two frames. */
  readonly gapMs: number;
  /** The number of rows in the document at the end. */
  readonly rows: number;
  /** Requested pages of the list. */
  readonly pages: number;
}

/** All samples of one way of scrolling. */
export interface Scrolled {
  readonly way: string;
  readonly samples: readonly ScrollSample[];
}

const SAMPLE_MS = 2_000;

interface Way {
  readonly name: string;
  readonly samples: number;
  /** The repeated user action. */
  readonly act: (page: Page, turn: number) => Promise<unknown>;
}

const WAYS: readonly Way[] = [
  { name: 'Show more', samples: 5, act: showMore },
  { name: 'wheel', samples: 3, act: (page) => page.mouse.wheel(0, 240) },
  { name: 'flung', samples: 3, act: (page) => page.mouse.wheel(0, 4_000) },
  { name: 'End', samples: 3, act: (page) => page.keyboard.press('End') },
  { name: 'thumb', samples: 3, act: (page, turn) => page.evaluate(thumbAt((turn * 0.37) % 1)) },
  { name: 'flung back', samples: 3, act: (page) => page.mouse.wheel(0, -4_000) },
];

async function showMore(page: Page): Promise<void> {
  const rows = page.locator('.long-list li');
  const before = await rows.count();
  await page.getByRole('button', { name: 'Show more' }).click();
  await rows.nth(before).waitFor();
}

const thumbAt = (part: number) =>
  `(() => { const list = document.querySelector('.long-list'); list.scrollTop = list.scrollHeight * ${part}; })()`;

/** Scrolls through the users of a target, one way after the other. */
export async function scrollUsers({ url, realm, window }: ViewTarget): Promise<readonly Scrolled[]> {
  const { page } = window;
  await page.goto(`${url}/console#/users?realm=${realm}`);
  const first = page.locator('.long-list .row').first();
  await first.focus();
  await first.hover();
  const all: Scrolled[] = [];
  for (const way of WAYS) all.push({ way: way.name, samples: await sampleWay(page, way) });
  return all;
}

async function sampleWay(page: Page, { samples, act }: Way): Promise<readonly ScrollSample[]> {
  const all: ScrollSample[] = [];
  while (all.length < samples) all.push(await scrollOnce(page, act));
  return all;
}

async function scrollOnce(page: Page, act: Way['act']): Promise<ScrollSample> {
  let pages = 0;
  const count = (request: { url(): string }) => {
    if (new URL(request.url()).pathname.endsWith('/search')) pages += 1;
  };
  page.on('request', count);
  await page.evaluate('globalThis.stopWatching = watchFrames()');
  const until = performance.now() + SAMPLE_MS;
  for (let turn = 0; performance.now() < until; turn += 1) {
    await act(page, turn);
    await Bun.sleep(10);
  }
  const seen = (await page.evaluate('stopWatching()')) as Omit<ScrollSample, 'pages'>;
  page.off('request', count);
  return { ...seen, pages };
}
