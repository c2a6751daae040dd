import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Locator } from 'playwright-core';
import { ROLES } from '../../src/model/principal.ts';
import { startService } from '../support/service.ts';
import { expectNoErrors, openSignedIn } from './console_session.ts';
import { DESKTOP, LONG_WAIT_MS, PHONE } from './console_window.ts';
import { importCrowd, personAt } from './crowd_fixture.ts';
import { ALL, TASKS, type Walk } from './tasks.ts';

/**
 * The tasks of people at the console, on 20,000 users, for every role that has the task, on a desktop and a phone. Prints the clicks, the
 * fields and the seconds of each: those of the page, without the time to read and think. A click is a click or Enter.
 */

setDefaultTimeout(4 * LONG_WAIT_MS);

const service = await startService({ offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' });
await importCrowd(service);

const VIEWS = { desktop: DESKTOP, phone: PHONE };
const CLICKS_MAX = 12;

const rows: string[] = [];
afterAll(() => console.log(['task | role | view | clicks | fields | seconds', ...rows].join('\n')));

const WALKS = ALL.flatMap((role) =>
  Object.entries(VIEWS).map(([view, viewport]) => ({ role, view, viewport })),
);
/** Every sixth user is of the first realm and has a username. Each walk has a user of its own. */
let people = 0;

describe.each(WALKS)('with the role $role on a $view', ({ role, view, viewport }) => {
  // Imports and exports are granted apart from a role.
  const scope = [...ROLES[role].scopes, ...(role === 'everything' ? ['transfer'] : [])].join(' ');

  for (const task of TASKS.filter(({ roles }) => roles.includes(role))) {
    test(`the role ${role} can ${task.title} on a ${view}`, async () => {
      const window = await openSignedIn(service, '#/', { scope, view: { viewport, scheme: 'light' } });
      const { page } = window;
      const number = people++;
      let clicks = 0;
      let fields = 0;
      const beganAt = performance.now();
      const click = async (target: Locator) => {
        clicks += 1;
        await target.click();
      };
      const field = (target: Locator) => {
        fields += 1;
        return target;
      };
      const openMenu = async () => {
        const button = page.getByRole('button', { name: 'Menu', expanded: false });
        if (await button.isVisible()) await click(button);
      };
      await task.run({
        service,
        page,
        person: personAt(6 * number) as Walk['person'],
        other: personAt(6 * number + 3),
        name: `${task.title} ${role} ${view}`.replaceAll(/[^a-z]+/gi, '.'),
        click,
        press: (name) => click(page.getByRole('button', { name, exact: true })),
        field,
        fill: (label, text) => field(page.getByLabel(label, { exact: true })).fill(text),
        openMenu,
        async goTo(label) {
          await openMenu();
          await click(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: label }));
        },
        async choose(text) {
          await field(page.getByRole('dialog').getByRole('searchbox')).fill(text);
          clicks += 1;
          await page.keyboard.press('Enter');
          await page.getByRole('button', { name: 'Choose another user' }).waitFor();
        },
        async open(text) {
          fields += 1;
          await page.keyboard.type(text);
          clicks += 1;
          await page.keyboard.press('Enter');
        },
      });
      const seconds = ((performance.now() - beganAt) / 1_000).toFixed(1);
      rows.push(`${task.number} ${task.title} | ${role} | ${view} | ${clicks} | ${fields} | ${seconds}`);
      await expectNoErrors(window);
      await window.close();
      expect(clicks).toBeLessThanOrEqual(task.clicksMax ?? CLICKS_MAX);
    });
  }
});
