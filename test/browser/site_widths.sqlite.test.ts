import { expect, setDefaultTimeout, test } from 'bun:test';
import { sharedSite } from '../support/shared_artefacts.ts';
import { sharedBrowser } from './browser.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** Whether readers see all of every page of the documentation, on a phone and on two screens. */

setDefaultTimeout(BROWSER_TEST_MS);

const WIDTHS = [390, 1280, 1600];

/** The elements that are wider than their box, or that a box around them cuts, and the wide code that shows no bar. */
const CUT = `(() => {
  const boxes = new Map([[document.documentElement, document.documentElement]]);
  const boxOf = (element) => {
    const parent = element.parentElement ?? document.documentElement;
    if (!boxes.has(parent))
      boxes.set(parent, getComputedStyle(parent).overflowX === 'visible' ? boxOf(parent) : parent);
    return boxes.get(parent);
  };
  const isCut = (element) => {
    const box = boxOf(element);
    const start = box === document.documentElement ? 0 : box.getBoundingClientRect().left + box.clientLeft;
    const { left, right } = element.getBoundingClientRect();
    return left < start - 1 || right > start + box.clientWidth + 1;
  };
  // The browser of the tests hides bars, and ignores their style where a colour is set.
  const hasBar = (block) => {
    const { overflowX, scrollbarColor } = getComputedStyle(block);
    return overflowX === 'auto' && scrollbarColor === 'auto' && getComputedStyle(block, '::-webkit-scrollbar').height > '0px';
  };
  const isWide = (element) => element.scrollWidth > element.clientWidth;
  const texts = [...document.querySelectorAll('table, th, td, ul, ol, li, dl, dt, dd, p, h1, h2, h3, h4')];
  const shown = texts.filter((element) => element.getClientRects().length > 0);
  const blocks = [...document.querySelectorAll('pre')].filter(isWide);
  return [
    ...shown.filter((element) => isWide(element) || isCut(element)),
    ...blocks.filter((block) => !hasBar(block)),
  ].map((element) => element.localName + ' ' + element.textContent.trim().slice(0, 60));
})()`;

test('no page of the site is cut on a phone or on a screen, and wide code has a bar', async () => {
  const folder = await sharedSite();
  const paths = [...new Bun.Glob('**/*.html').scanSync(folder)].sort();
  // The layout needs no script.
  const context = await (await sharedBrowser()).newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  const found: string[] = [];
  for (const path of paths) {
    await page.goto(`file://${folder}/${path}`);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const cut = (await page.evaluate(CUT)) as readonly string[];
      found.push(...cut.map((text) => `${path} at ${width}: ${text}`));
    }
  }
  await context.close();
  expect(paths.length).toBeGreaterThan(100);
  expect(found).toEqual([]);
});
