import type { Page } from 'playwright-core';
import type { Station } from './targets.ts';

/** In a page: `watchFrames()` looks at every frame of a long list until what it answers is called. */
export const WATCH_FRAMES = `globalThis.watchFrames = () => {
  const seen = { gapMs: 0, drawn: 0, deepest: 0 };
  let last = performance.now();
  let isOver = false;
  const look = (now) => {
    if (isOver) return;
    seen.gapMs = Math.max(seen.gapMs, now - last);
    last = now;
    const rows = document.querySelectorAll('.long-list li');
    seen.drawn = Math.max(seen.drawn, rows.length);
    seen.deepest = Math.max(seen.deepest, Number(rows[rows.length - 1]?.ariaPosInSet ?? 0));
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  return () => {
    isOver = true;
    // A page that stood still to the end has had no frame to tell of it.
    seen.gapMs = Math.max(seen.gapMs, performance.now() - last);
    return seen;
  };
};`;

/** What was seen of a list in some seconds in which somebody went through it. */
export interface Go {
  /** The longest time between two frames. */
  readonly gapMs: number;
  /** The most rows that stood in the page at once. */
  readonly drawn: number;
  /** The place of the last row that was drawn. */
  readonly deepest: number;
  /** Pages of the list that were asked for. */
  readonly pages: number;
}

/** All goes of one way. */
export interface Scrolled {
  readonly way: string;
  readonly goes: readonly Go[];
}

const GO_MS = 2_000;

interface Way {
  readonly name: string;
  readonly goes: number;
  /** What somebody does again and again. */
  readonly act: (page: Page, turn: number) => Promise<unknown>;
}

const WAYS: readonly Way[] = [
  { name: 'wheel', goes: 3, act: (page) => page.mouse.wheel(0, 240) },
  { name: 'flung', goes: 3, act: (page) => page.mouse.wheel(0, 4_000) },
  { name: 'End', goes: 15, act: (page) => page.keyboard.press('End') },
  { name: 'thumb', goes: 3, act: (page, turn) => page.evaluate(thumbAt((turn * 0.37) % 1)) },
  { name: 'flung back', goes: 3, act: (page) => page.mouse.wheel(0, -4_000) },
];

const thumbAt = (part: number) =>
  `(() => { const list = document.querySelector('.long-list'); list.scrollTop = list.scrollHeight * ${part}; })()`;

/** Goes through the users of a station, in one way after the other. */
export async function scrollUsers({ url, realm, window }: Station): Promise<readonly Scrolled[]> {
  const { page } = window;
  await page.goto(`${url}/console#/realms/${realm}/users`);
  const first = page.locator('.long-list .row').first();
  await first.focus();
  await first.hover();
  const all: Scrolled[] = [];
  for (const way of WAYS) all.push({ way: way.name, goes: await goesOf(page, way) });
  return all;
}

async function goesOf(page: Page, { goes, act }: Way): Promise<readonly Go[]> {
  const all: Go[] = [];
  while (all.length < goes) all.push(await go(page, act));
  return all;
}

async function go(page: Page, act: Way['act']): Promise<Go> {
  let pages = 0;
  const count = (request: { url(): string }) => {
    if (new URL(request.url()).searchParams.has('page[after]')) pages += 1;
  };
  page.on('request', count);
  await page.evaluate('globalThis.stopWatching = watchFrames()');
  const until = performance.now() + GO_MS;
  for (let turn = 0; performance.now() < until; turn += 1) {
    await act(page, turn);
    await Bun.sleep(10);
  }
  const seen = (await page.evaluate('stopWatching()')) as Omit<Go, 'pages'>;
  page.off('request', count);
  return { ...seen, pages };
}
