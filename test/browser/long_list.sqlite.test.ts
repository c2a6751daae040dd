import { expect, setDefaultTimeout, test } from 'bun:test';
import { realm, user } from '../../src/model/resources.ts';
import type { Write } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { buildRecord, insertOf, realmMembers, startService, userMembers } from '../support/service.ts';
import { expectNoErrors, openSignedIn } from './console_session.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** A list longer than the rows kept in memory. */

setDefaultTimeout(BROWSER_TEST_MS);

const USERS = 7_000;
/** Rendered rows at any time in a window of 900 pixels. */
const DRAWN_MAX = 60;

const service = await startService();
const home = systemClock.mintId();
const { records } = service.db.engine;
await records.commit([insertOf(realm, [home], buildRecord([home], realmMembers))]);
for (let first = 0; first < USERS; first += 1_000) {
  const writes = Array.from({ length: 1_000 }, (_, index): Write => {
    const key = [home, systemClock.mintId()] as const;
    const record = {
      ...buildRecord(key, { ...userMembers, name: `User ${first + index}` }),
      created_at: first + index,
    };
    return insertOf(user, key, record);
  });
  expect(await records.commit(writes)).toEqual({ kind: 'written' });
}

test('a list of 7,000 users scrolls to its end and back, and renders few rows at a time', async () => {
  const window = await openSignedIn(service, `#/realms/${home}/users`, { scope: 'realms:read users:read' });
  const { page } = window;
  const row = (name: string) => page.locator('.long-list .row', { hasText: new RegExp(`^${name}jane`) });
  await row(`User ${USERS - 1}`).waitFor();
  let most = 0;
  while ((await row('User 0').count()) === 0) {
    await page.evaluate(`(() => {
      const list = document.querySelector('.long-list');
      list.scrollTop = list.scrollHeight;
    })()`);
    await page.waitForTimeout(30);
    most = Math.max(most, await page.locator('.long-list li').count());
  }
  expect(most).toBeLessThanOrEqual(DRAWN_MAX);
  await expectNoErrors(window);
  await page.evaluate(`document.querySelector('.long-list').scrollTop = 0`);
  await row(`User ${USERS - 1}`).waitFor();
  await page.getByRole('button', { name: 'Newest first' }).click();
  await row('User 0').waitFor();
  await row('User 0').press('Enter');
  await page.getByRole('heading', { name: 'User 0' }).waitFor();
  expect(window.errors).toEqual([]);
});

test('a long list is paged by keys alone after the first focused row was unloaded', async () => {
  const window = await openSignedIn(service, `#/realms/${home}/users`, { scope: 'realms:read users:read' });
  const { page } = window;
  const rows = page.locator('.long-list .row');
  await rows.filter({ hasText: `User ${USERS - 1}j` }).focus();
  // Each press scrolls to the last loaded row, which loads the next page.
  let reached = 0;
  while (reached < 1_200) {
    await page.keyboard.press('End');
    await page.waitForTimeout(30);
    reached = Number(await page.locator('.long-list li').last().getAttribute('aria-posinset'));
  }
  await page.keyboard.press('Home');
  await rows.filter({ hasText: `User ${USERS - 1}j` }).waitFor();
  await expectNoErrors(window);
});
