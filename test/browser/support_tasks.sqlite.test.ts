import { afterAll, describe, expect, test } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { expectNoErrors, openMenu, openSignedIn, WRITE_SCOPE } from './console_session.ts';
import { type ConsoleWindow, DESKTOP, PHONE, type View } from './console_window.ts';
import { openShop } from './open_console.ts';

/**
 * Ten tasks of a support desk, each from the start page, on a phone and a desktop. Prints the clicks and the seconds of each: those
 * of the page, without the time to read and think.
 */

const { service, shop } = await openShop();
const token = await service.token(WRITE_SCOPE);

const NAMES = {
  phone: { viewport: PHONE, scheme: 'light' },
  desktop: { viewport: DESKTOP, scheme: 'light' },
};
const VIEWS = Object.entries(NAMES) as unknown as readonly (readonly [keyof typeof NAMES, View])[];
const SUBJECT = 'auth0|5f7c8ec7c33c6c004bbafe82';

const rows: string[] = [];
afterAll(() => console.log(['task | view | clicks | seconds', ...rows].join('\n')));

async function create(path: string, data: object): Promise<string> {
  const answer = await service.post(path, token, { data });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: { id: string } }).data.id;
}

const usersOf = (realm: string) => `/v2/authentication-realms/${realm}/user-authentication-info`;
const seller = await create('/v2/authentication-realms', {
  type: 'authentication-realm',
  name: 'Seller Organization',
});
const addUser = (realm: string, name: string, more: object) =>
  create(usersOf(realm), { type: 'user_authentication_info', name, ...more });
await addUser(shop.realm, 'Kim Lee', { email: 'kim@buyers.example' });
await addUser(seller, 'Kim Lee', { email: 'kim@sellers.example' });
await addUser(seller, 'Dr. Maria Q.', { email: 'mq@sellers.example', family_name: 'Quintero' });

/** A window whose clicks are counted. */
interface Walk {
  readonly page: Page;
  readonly window: ConsoleWindow;
  click(target: Locator): Promise<void>;
  /** Follows an entry of the menu, which a phone has to open first. */
  goTo(name: string): Promise<void>;
  find(text: string): Promise<void>;
  /** Ends a task: prints its row, and returns its clicks. */
  end(task: string): number;
}

async function walk(
  [name, view]: (typeof VIEWS)[number],
  steps: (walk: Walk) => Promise<void>,
): Promise<void> {
  const window = await openSignedIn(service, '#/', { scope: `${WRITE_SCOPE} admin transfer`, view });
  const { page } = window;
  let clicks = 0;
  let beganAt = performance.now();
  const click = async (target: Locator) => {
    clicks += 1;
    await target.click();
  };
  await steps({
    page,
    window,
    click,
    async goTo(label) {
      if (await page.getByRole('button', { name: 'Menu', expanded: false }).isVisible()) clicks += 1;
      await openMenu(window);
      await click(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: label }));
    },
    find: (text) => page.getByRole('searchbox').fill(text),
    end(task) {
      const count = clicks;
      rows.push(`${task} | ${name} | ${count} | ${((performance.now() - beganAt) / 1_000).toFixed(1)}`);
      clicks = 0;
      beganAt = performance.now();
      return count;
    },
  });
  await expectNoErrors(window);
  await window.close();
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const hit = (page: Page, text: string) => page.getByRole('main').getByRole('link').filter({ hasText: text });
const title = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 }).waitFor();

async function createUser({ page, click, goTo }: Walk, realm: string, name: string): Promise<void> {
  await goTo('Realms');
  await click(hit(page, realm));
  await click(page.getByRole('main').getByRole('link', { name: 'Users', exact: true }));
  await click(button(page, 'New user'));
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByLabel('Email').fill('in.two@example.com');
  await click(button(page, 'Create'));
  await title(page, name);
}

describe.each(VIEWS)('on a %s', (...view) => {
  test('a user is found by the family name', async () => {
    await walk(view, async ({ page, click, find, end }) => {
      await find('quintero');
      await click(hit(page, 'Dr. Maria Q.'));
      await title(page, 'Dr. Maria Q.');
      expect(end('find by family name')).toBe(1);
    });
  });

  test('two users with one name are told apart', async () => {
    await walk(view, async ({ page, click, find, end }) => {
      await find('kim lee');
      await click(hit(page, 'kim@sellers.example'));
      await title(page, 'Kim Lee');
      await page.getByText('kim@sellers.example').first().waitFor();
      expect(end('tell two namesakes apart')).toBe(1);
    });
  });

  test('the user with a subject is found', async () => {
    await walk(view, async ({ page, click, find, end }) => {
      await find(SUBJECT);
      await click(hit(page, SUBJECT));
      await title(page, 'Jane Doe');
      expect(end('who has this subject')).toBe(1);
    });
  });

  test('a link is removed, the removal is undone, and the history names who did it', async () => {
    await walk(view, async ({ page, click, find, end }) => {
      const link = page.getByRole('row', { name: `OIDC link ${SUBJECT}` });
      await find('jane.doe@');
      await click(hit(page, 'Jane Doe').first());
      await click(button(page, `Remove ${SUBJECT}`));
      await click(button(page, 'Remove'));
      await link.waitFor({ state: 'detached' });
      expect(end('remove a link')).toBe(3);
      await click(button(page, 'Undo'));
      await click(button(page, 'Create'));
      await link.waitFor();
      expect(end('undo it')).toBe(2);
    });
    await walk(view, async ({ page, click, find, end }) => {
      await find('jane.doe@');
      await click(hit(page, 'Jane Doe').first());
      const history = page.getByRole('region', { name: 'History' });
      // The clients of the tests have this name.
      const entry = history.getByRole('listitem').filter({ hasText: 'OIDC link deleted' }).first();
      await entry.filter({ hasText: 'test' }).waitFor();
      expect(end('see who changed it')).toBe(1);
    });
  });

  test('a person is added to two realms', async () => {
    await walk(view, async (steps) => {
      await createUser(steps, 'Buyer Organization', `In Two ${view[0]}`);
      await createUser(steps, 'Seller Organization', `In Two ${view[0]}`);
      expect(steps.end('add a person to two realms')).toBeLessThanOrEqual(12);
    });
  });

  test('a developer gets a client limited to one realm', async () => {
    await walk(view, async ({ page, click, goTo, end }) => {
      await goTo('Clients and keys');
      await click(button(page, 'New client'));
      await page.getByLabel('Name').fill(`Developer ${view[0]}`);
      await click(page.getByLabel('users:read'));
      await click(page.getByLabel('Some'));
      await click(page.getByLabel('Seller Organization'));
      await click(button(page, 'Create'));
      await click(button(page, 'Copy the secret'));
      await click(button(page, 'I have stored it'));
      await hit(page, `Developer ${view[0]}`).waitFor();
      expect(end('hand a developer a limited client')).toBeLessThanOrEqual(9);
    });
  });

  test('a file with three bad lines is imported, and its bad lines are listed', async () => {
    await walk(view, async ({ page, click, goTo, end }) => {
      await goTo('Import and export');
      const file = { name: 'realm.ndjson', mimeType: 'text/plain', buffer: Buffer.from(fileWithBadLines()) };
      await page.getByLabel('File of JSON lines').setInputFiles(file);
      await click(button(page, 'Import'));
      await page.getByText('3 rejected.').waitFor();
      await page.getByText('Line 3: email is missing').waitFor();
      await page.getByRole('link', { name: 'Save realm.ndjson.rejected.csv' }).waitFor();
      // And those in the file dialog of the browser.
      expect(end('import a file with three bad lines')).toBeLessThanOrEqual(3);
    });
  });

  test('a realm is exported', async () => {
    await walk(view, async ({ page, click, goTo, end }) => {
      await goTo('Import and export');
      await page.getByLabel('Realm', { exact: true }).selectOption(shop.realm);
      await click(button(page, 'Export records as JSON lines'));
      const name = `realm-${shop.realm}.ndjson`;
      const link = page.getByRole('link', { name: `Save ${name}` });
      const [download] = await Promise.all([page.waitForEvent('download'), click(link)]);
      expect(download.suggestedFilename()).toBe(name);
      expect(end('export one realm')).toBeLessThanOrEqual(4);
    });
  });
});

/** A realm with two users: three other lines have no e-mail address, an unknown type, and no JSON. */
function fileWithBadLines(): string {
  const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
  const user = { type: 'user_authentication_info', realm_id: id(1) };
  const lines = [
    { type: 'authentication-realm', id: id(1), name: 'Imported' },
    { ...user, id: id(2), name: 'First', email: 'first@example.com' },
    { ...user, id: id(3), name: 'Without an address' },
    { ...user, type: 'something else', id: id(4), name: 'Of no kind' },
    { ...user, id: id(5), name: 'Second', email: 'second@example.com' },
  ];
  return `${lines.map((line) => JSON.stringify(line)).join('\n')}\n{"type": \n`;
}
