import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { endBrowser } from '../test/browser/browser.ts';
import { openSignedIn, WRITE_SCOPE } from '../test/browser/console_session.ts';
import { DESKTOP, openWindow, VIEWS, type View } from '../test/browser/console_window.ts';
import { pagePaths, waitForPage } from '../test/browser/page_paths.ts';
import { createShop, type Shop } from '../test/browser/shop_fixture.ts';
import { startService } from '../test/support/service.ts';

/**
 * Takes screenshots of the console. `bun scripts/make_screenshots.ts` writes `docs/console.png` for the README;
 * `--pages FOLDER` writes every page to a folder, in light and dark, at phone and laptop size.
 */

/** A small laptop: narrower than the windows of the tests. */
const LAPTOP = { width: 1280, height: 800 } as const;

const { values: options } = parseArgs({ options: { pages: { type: 'string' } } });
const README_IMAGE = fileURLToPath(new URL('../docs/console.png', import.meta.url));
const IMAGE_BYTES_MAX = 300_000;

const service = await startService({ offline: 'true', metrics: '127.0.0.1:0' });
try {
  const shop = await createShop(service);
  if (options.pages === undefined) await makeReadmeImage(shop);
  else await makePageImages(shop, options.pages);
} finally {
  await endBrowser();
  await service.stop();
}

async function makeReadmeImage(shop: Shop): Promise<void> {
  const view: View = { viewport: { width: DESKTOP.width, height: 860 }, scheme: 'light' };
  const screenshot = await takeScreenshot(view, pagePaths(shop).user);
  if (screenshot.length > IMAGE_BYTES_MAX)
    throw new Error(`the image has ${screenshot.length} bytes; the maximum is ${IMAGE_BYTES_MAX}`);
  writeFileSync(README_IMAGE, screenshot);
  console.log(`${README_IMAGE}: ${screenshot.length} bytes`);
}

async function makePageImages(shop: Shop, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const { viewport, scheme } of VIEWS) {
    const isPhone = viewport.width !== DESKTOP.width;
    const view = { viewport: isPhone ? viewport : LAPTOP, scheme };
    const kind = `${isPhone ? 'phone' : 'desktop'}-${scheme}`;
    for (const [name, fragment] of Object.entries(pagePaths(shop))) {
      writeFileSync(join(folder, `${name}-${kind}.png`), await takeScreenshot(view, fragment));
    }
    const window = await openWindow(service.url, view);
    await window.goto('');
    await window.page.locator('h1').waitFor();
    writeFileSync(join(folder, `sign-in-${kind}.png`), await window.page.screenshot({ fullPage: true }));
    await window.page.goto(`${service.url}/docs`);
    await waitForPage(window);
    writeFileSync(join(folder, `docs-${kind}.png`), await window.page.screenshot());
    await window.close();
  }
}

async function takeScreenshot(view: View, fragment: string): Promise<Buffer> {
  const window = await openSignedIn(service, fragment, { scope: `${WRITE_SCOPE} admin transfer`, view });
  await waitForPage(window);
  const screenshot = await window.page.screenshot({ fullPage: view.viewport.width < LAPTOP.width });
  await window.close();
  return screenshot;
}
