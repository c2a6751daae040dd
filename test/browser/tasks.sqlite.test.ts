import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Locator, Page, Request } from 'playwright-core';
import type { Uuid } from '../../src/model/id.ts';
import { ROLES } from '../../src/model/principal.ts';
import { signIn } from '../support/console_sign_in.ts';
import { createDeadLetters } from '../support/dead_letter_fixtures.ts';
import { startService } from '../support/service.ts';
import { addTarget, startReceiver } from '../support/webhook_receivers.ts';
import { expectNoErrors, openSignedIn, signInByLink } from './console_session.ts';
import { DESKTOP, LONG_WAIT_MS, openWindow, PHONE } from './console_window.ts';
import { throttle } from './crowd_events.ts';
import { importCrowd, personAt } from './crowd_fixture.ts';
import { ALL, type Place, type Role, TASKS, type Task, type Walk } from './tasks.ts';

/**
 * The tasks of people at the console, on 20,000 users, for every role that has the task, on a desktop and a phone, and some by the
 * keyboard alone. Prints the clicks, the fields and the seconds of each: those of the page, without the time to read and think. A
 * click is a click or Enter. Roles that do not have a task are offered no control for it, and the API rejects its requests.
 */

setDefaultTimeout(4 * LONG_WAIT_MS);

const service = await startService({ offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' });
await importCrowd(service);

const VIEWS = { desktop: DESKTOP, phone: PHONE };
const CLICKS_MAX = 12;

const rows: string[] = [];
afterAll(() => console.log(['task | role | view | clicks | fields | seconds', ...rows].join('\n')));

/** Imports and exports are granted apart from a role. */
const scopeOf = (role: Role) =>
  [...ROLES[role].scopes, ...(role === 'everything' ? ['transfer'] : [])].join(' ');

/** How a walk acts on a page. */
interface Hands {
  click(target: Locator): Promise<void>;
  fill(target: Locator, text: string): Promise<void>;
}

const MOUSE: Hands = { click: (target) => target.click(), fill: (target, text) => target.fill(text) };

/** Tab stops from one control of a task to the next. */
const STOPS_MAX = 25;

/** The keys Tab and Enter, and those of characters. */
function keyboardOf(page: Page): Hands {
  const reach = async (target: Locator) => {
    await target.and(page.locator(':not(:disabled)')).waitFor();
    const reached = target.and(page.locator(':focus'));
    for (let stops = 0; (await reached.count()) === 0; stops += 1) {
      if (stops === STOPS_MAX) throw new Error(`not among the next ${STOPS_MAX} Tab stops: ${target}`);
      await page.keyboard.press('Tab');
      expect(await page.evaluate(UNSEEN_FOCUS)).toBeNull();
    }
  };
  return {
    async click(target) {
      await reach(target);
      await page.keyboard.press('Enter');
    },
    async fill(target, text) {
      await reach(target);
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.type(text);
    },
  };
}

/** The element with the focus if it is covered, out of sight or without a ring; otherwise null. */
const UNSEEN_FOCUS = `(() => {
  const at = document.activeElement;
  const { left, top, width, height } = at.getBoundingClientRect();
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const hasRing = outlineStyle === 'solid' && outlineWidth === '2px';
  const isOnTop = at.contains(document.elementFromPoint(left + width / 2, top + height / 2));
  return at === document.body || (hasRing && isOnTop) ? null : at.outerHTML;
})()`;

/** Every sixth user is of the first realm and has a username. Each walk has a user of its own. */
let people = 0;
const nextPeople = () => {
  const number = 6 * people++;
  return { person: personAt(number) as Walk['person'], other: personAt(number + 3) };
};

/** The requests of each task that not all roles may send. */
const requestsOf = new Map<Task, readonly Request[]>();

async function walkTask(task: Task, role: Role, view: keyof typeof VIEWS | 'keyboard'): Promise<void> {
  const viewport = view === 'phone' ? PHONE : DESKTOP;
  const scope = scopeOf(role);
  const window = await openSignedIn(service, '#/', { scope, view: { viewport, scheme: 'light' } });
  const { page } = window;
  const hands = view === 'keyboard' ? keyboardOf(page) : MOUSE;
  const requests: Request[] = [];
  page.on('request', (request) => {
    if (isRestricted(request)) requests.push(request);
  });
  let clicks = 0;
  let fields = 0;
  const beganAt = performance.now();
  const click = async (target: Locator) => {
    clicks += 1;
    await hands.click(target);
  };
  const field = (target: Locator) => {
    fields += 1;
    return target;
  };
  const fill: Walk['fill'] = (target, text) =>
    hands.fill(field(typeof target === 'string' ? page.getByLabel(target, { exact: true }) : target), text);
  const openMenu = async () => {
    const button = page.getByRole('button', { name: 'Menu', expanded: false });
    if (await button.isVisible()) await click(button);
  };
  const pressEnter = async () => {
    clicks += 1;
    await page.keyboard.press('Enter');
  };
  await task.run({
    service,
    page,
    ...nextPeople(),
    name: `${task.title} ${role} ${view}`.replaceAll(/[^a-z]+/gi, '.'),
    click,
    press: (name) => click(page.getByRole('button', { name, exact: true })),
    field,
    fill,
    openMenu,
    async goTo(label) {
      await openMenu();
      await click(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: label }));
    },
    async choose(text) {
      await fill(page.getByRole('dialog').getByRole('searchbox'), text);
      await pressEnter();
      await page.getByRole('button', { name: 'Choose another user' }).waitFor();
    },
    async open(text) {
      fields += 1;
      await page.keyboard.type(text);
      await pressEnter();
    },
  });
  const seconds = ((performance.now() - beganAt) / 1_000).toFixed(1);
  rows.push(`${task.number} ${task.title} | ${role} | ${view} | ${clicks} | ${fields} | ${seconds}`);
  await expectNoErrors(window);
  await window.close();
  expect(clicks).toBeLessThanOrEqual(task.clicksMax ?? CLICKS_MAX);
  if (role === 'everything') requestsOf.set(task, requests);
}

/** Whether this writes, or is of the administration. A search is a POST as well. */
function isRestricted(request: Request): boolean {
  const { pathname } = new URL(request.url());
  return pathname.startsWith('/admin/') || (request.method() !== 'GET' && !pathname.endsWith('/search'));
}

const WALKS = ALL.flatMap((role) => (['desktop', 'phone'] as const).map((view) => ({ role, view })));

describe.each(WALKS)('with the role $role on a $view', ({ role, view }) => {
  for (const task of TASKS.filter(({ roles }) => roles.includes(role))) {
    test(`the role ${role} can ${task.title} on a ${view}`, () => walkTask(task, role, view));
  }
});

describe('by the keyboard', () => {
  for (const task of TASKS.filter(({ number }) => number <= 10)) {
    const [role = 'everything'] = task.roles;
    test(`the role ${role} can ${task.title} by the keyboard alone`, () => walkTask(task, role, 'keyboard'));
  }
});

describe('for other roles', async () => {
  const restricted = TASKS.filter(({ roles }) => roles !== ALL);
  const { person } = nextPeople();
  await throttle(service, person);
  const { webhook } = await addTarget(service, startReceiver().url);
  await createDeadLetters(service, webhook.webhookId, 1, person.realm as Uuid);
  const places: Readonly<Record<Place, string>> = {
    find: '#/',
    user: `#/realms/${person.realm}/users/${person.id}`,
    realms: '#/realms',
    clients: '#/clients',
    webhook: `#/webhooks/${webhook.webhookId}`,
    transfer: '#/transfer',
    access: '#/access',
  };

  test.each(ALL)(
    'a session with the role %s is offered the controls of its tasks, and no others',
    async (role) => {
      const window = await openWindow(service.url);
      await signInByLink(window, service, scopeOf(role));
      for (const [place, fragment] of Object.entries(places)) {
        await window.goto(fragment);
        await window.settled();
        for (const { title, control, roles } of restricted.filter(({ control }) => control?.[0] === place)) {
          const target = controlNamed(window.page, control?.[1]);
          if (roles.includes(role)) await target.first().waitFor();
          else expect([title, await target.count()]).toEqual([title, 0]);
        }
      }
      await window.close();
    },
  );

  const controlNamed = (page: Page, name = /./ as string | RegExp) =>
    page
      .getByRole('button', { name, exact: true })
      .or(page.getByRole('link', { name, exact: true }))
      .or(page.getByLabel(name, { exact: true }))
      .or(page.locator('summary').filter({ hasText: name }));

  for (const task of restricted) {
    test(`the API answers 403 to requests of other roles that ${task.title}`, async () => {
      if (!requestsOf.has(task)) await walkTask(task, 'everything', 'desktop');
      const requests = requestsOf.get(task) ?? [];
      expect(requests).not.toEqual([]);
      for (const role of ALL.filter((each) => !task.roles.includes(each))) {
        const { access_token: token } = await signIn(service, { scope: scopeOf(role) });
        for (const request of requests)
          expect([role, request.url(), await statusOf(request, token)]).toEqual([role, request.url(), 403]);
      }
    });
  }

  /** The status of the same request with another token. */
  async function statusOf(request: Request, token: string): Promise<number> {
    const { authorization: _, ...headers } = request.headers();
    const body = request.postData();
    const answer = await fetch(request.url(), {
      method: request.method(),
      headers: { ...headers, authorization: `Bearer ${token}` },
      ...(body === null ? {} : { body }),
    });
    await answer.arrayBuffer();
    return answer.status;
  }
});
