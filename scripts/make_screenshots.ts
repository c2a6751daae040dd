import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Uuid } from '../src/model/id.ts';
import { createAuditEntry } from '../src/model/log/audit_entry.ts';
import { openSignInBudgets } from '../src/sign_in/budgets.ts';
import { endBrowser } from '../test/browser/browser.ts';
import { EVERY_SCOPE, openMenu, openSignedIn } from '../test/browser/console_session.ts';
import { type ConsoleWindow, DESKTOP, openWindow, VIEWS, type View } from '../test/browser/console_window.ts';
import { type PageName, pagePaths, waitForPage } from '../test/browser/page_paths.ts';
import { createShop, type Shop } from '../test/browser/shop_fixture.ts';
import { signIn } from '../test/support/console_sign_in.ts';
import { createDeadLetters } from '../test/support/dead_letter_fixtures.ts';
import { startService } from '../test/support/service.ts';

/**
 * Takes screenshots of the console. `bun scripts/make_screenshots.ts` writes `docs/console.png` for the README;
 * `--pages FOLDER` writes every page and dialog to a folder, in light and dark, at phone and laptop size.
 */

/** A small laptop: narrower than the windows of the tests. */
const LAPTOP = { width: 1280, height: 800 } as const;

const { values: options } = parseArgs({ options: { pages: { type: 'string' } } });
const README_IMAGE = fileURLToPath(new URL('../docs/console.png', import.meta.url));
const IMAGE_BYTES_MAX = 300_000;

/** Buttons that open a dialog or a menu, by page. */
const DIALOGS: Partial<Readonly<Record<PageName, readonly string[]>>> = {
  find: ['Shortcuts'],
  allUsers: ['Columns'],
  realms: ['New realm'],
  realm: ['Edit', 'Delete', 'New provider', 'New password profile'],
  users: ['New user'],
  user: [
    ...['Edit', 'Disable', 'Sign out everywhere', 'Merge into…', 'Delete', 'Erase permanently'],
    ...['Add link', 'Add username', 'History of jane.doe', 'Edit jane.doe', 'Move jane.doe'],
    ...['Move 00u1a2b3c4d5e6f7', 'Remove 00u1a2b3c4d5e6f7'],
  ],
  clients: ['New client', 'New key'],
  client: ['Edit', 'New secret', 'Disable', 'Delete'],
  access: ['New invitation', 'End all'],
  webhooks: ['New webhook'],
  webhook: ['Edit', 'New secret', 'Delete'],
};

const service = await startService({ offline: 'true', metrics: '127.0.0.1:0', logSignIns: 'true' });
// One client: the page of clients lists it.
const token = await service.token(EVERY_SCOPE);
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
  await createStates(shop);
  const empty = await startService({ offline: 'true' });
  const emptyToken = await empty.token(EVERY_SCOPE);
  for (const { viewport, scheme } of VIEWS) {
    const isPhone = viewport.width !== DESKTOP.width;
    const view = { viewport: isPhone ? viewport : LAPTOP, scheme };
    const save = async (name: string, { page }: ConsoleWindow, fullPage = true) =>
      writeFileSync(
        join(folder, `${name}-${isPhone ? 'phone' : 'desktop'}-${scheme}.png`),
        await page.screenshot({ fullPage }),
      );
    for (const [name, fragment] of Object.entries(pagePaths(shop))) {
      const window = await openSignedIn(service, fragment, { token, scope: EVERY_SCOPE, view });
      await waitForPage(window);
      await save(name, window);
      for (const [index, button] of (DIALOGS[name as PageName] ?? []).entries()) {
        await openDialog(window, button);
        await save(`${name}-dialog-${index}`, window, false);
        await window.page.keyboard.press('Escape');
      }
      await window.close();
    }
    for (const fragment of ['find', 'users', 'realms', 'clients', 'changes', 'webhooks']) {
      const window = await openSignedIn(empty, `#/${fragment.replace('find', '')}`, {
        ...{ token: emptyToken, scope: EVERY_SCOPE, view },
      });
      await waitForPage(window);
      await save(`empty-${fragment}`, window);
      await window.close();
    }
    const window = await openWindow(service.url, view);
    await window.goto('');
    await window.page.locator('h1').waitFor();
    await save('sign-in', window);
    await window.page.goto(`${service.url}/docs`);
    await waitForPage(window);
    await save('docs', window, false);
    await window.close();
  }
  await empty.stop();
}

async function openDialog(window: ConsoleWindow, button: string): Promise<void> {
  const { page } = window;
  if (button === 'Shortcuts') await openMenu(window);
  if (button === 'Columns') await page.locator('summary').click();
  else await page.getByRole('button', { name: button, exact: true }).first().click();
  await page.getByText('Loading…').waitFor({ state: 'hidden' });
  await waitForPage(window);
}

/** A user who is throttled and has signed in, a webhook that fails, an invitation and a session. */
async function createStates({ realm, user, passwordProfile, webhook, ...shop }: Shop): Promise<void> {
  const { db, clock } = service;
  const budgets = openSignInBudgets(db.engine.budgets, db.logKeys, clock);
  const name = { realmId: realm as Uuid, profileId: passwordProfile as Uuid, usernameKey: 'jane.doe' };
  for (let count = 0; count < 100; count += 1)
    await budgets.countWrong({ ...name, clientId: 'shop', address: undefined, device: undefined });
  for (const [object, detail] of [
    [shop.usernameLink, {}],
    [shop.subjectLink, { mechanism: 'oidc' }],
  ] as const) {
    const fields = { realm: realm as Uuid, user: user as Uuid, object, detail };
    await db.engine.log.append([createAuditEntry('sign-in.succeeded', fields, clock)]);
  }
  await createDeadLetters(service, webhook, 3, realm as Uuid);
  const data = { name: 'Ben at the desk', scopes: ['users:read'], realms: [realm] };
  const invited = await service.post('/admin/v1/console-links', token, { data });
  if (!invited.ok) throw new Error(await invited.text());
  await signIn(service, { scope: 'support', label: 'Clara of the support' });
}

async function takeScreenshot(view: View, fragment: string): Promise<Buffer> {
  const window = await openSignedIn(service, fragment, { token, scope: EVERY_SCOPE, view });
  await waitForPage(window);
  const screenshot = await window.page.screenshot();
  await window.close();
  return screenshot;
}
