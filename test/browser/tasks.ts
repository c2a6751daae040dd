import { expect } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import type { Uuid } from '../../src/model/id.ts';
import type { ROLES } from '../../src/model/principal.ts';
import { createDeadLetters } from '../support/dead_letter_fixtures.ts';
import { freshFolder, type Service } from '../support/service.ts';
import { addTarget, startReceiver } from '../support/webhook_receivers.ts';
import { changeSubject, throttle } from './crowd_events.ts';
import { CROWD, type Person, REALMS } from './crowd_fixture.ts';

/** The tasks of support agents and administrators. Each begins on Find with the cursor in the search. */

export type Role = keyof typeof ROLES;

/** What a task does at the console, counted. */
export interface Walk {
  readonly service: Service;
  readonly page: Page;
  /** A user of the first realm with a link to Google and a username. */
  readonly person: Person & { readonly username: string };
  /** A user of the same realm without a username. */
  readonly other: Person;
  /** Different in each walk. */
  readonly name: string;
  click(target: Locator): Promise<void>;
  press(name: string): Promise<void>;
  /** Counts a field in which the task chooses. */
  field(target: Locator): Locator;
  /** Types into a field, which may be named by its label. */
  fill(target: Locator | string, text: string): Promise<void>;
  /** Opens the side bar, where it is behind a button. */
  openMenu(): Promise<void>;
  /** Follows an entry of the menu. */
  goTo(name: string): Promise<void>;
  /** Chooses a user in a dialog by its search. */
  choose(text: string): Promise<void>;
  /** Searches for a text, and presses Enter. */
  open(text: string): Promise<void>;
}

/** Pages with controls that not all roles are offered. */
export type Place = 'find' | 'user' | 'realms' | 'clients' | 'webhook' | 'transfer' | 'access';

export interface Task {
  readonly number: number;
  readonly title: string;
  readonly roles: readonly Role[];
  /** A button, link, field or summary that only these roles are offered. Undefined if all roles have the task. */
  readonly control?: readonly [place: Place, name: string | RegExp];
  /** Default: a dozen. */
  readonly clicksMax?: number;
  run(walk: Walk): Promise<void>;
}

const [shop] = REALMS;
if (!shop) throw new Error('no realm');

export const ALL: readonly Role[] = ['read', 'support', 'everything'];
const SUPPORT: readonly Role[] = ['support', 'everything'];
const EVERYTHING: readonly Role[] = ['everything'];

const titleOf = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 });
const main = (page: Page) => page.getByRole('main');
const linkRow = (page: Page, kind: string, name: string) =>
  page.getByRole('row', { name: `${kind} ${name}` });

export const TASKS: readonly Task[] = [
  {
    number: 1,
    clicksMax: 3,
    title: 'find by part of a surname',
    roles: ALL,
    async run({ page, click, person: { name }, fill }) {
      const [first = '', , family = ''] = name.split(' ');
      await fill(page.getByRole('searchbox'), `${first} ${family.slice(0, 4)}`);
      await click(main(page).getByRole('link').filter({ hasText: name }));
      await titleOf(page, name).waitFor();
    },
  },
  {
    number: 2,
    clicksMax: 3,
    title: 'find by e-mail',
    roles: ALL,
    async run({ page, open, person }) {
      await open(person.email);
      await titleOf(page, person.name).waitFor();
    },
  },
  ...(['subject', 'username', 'log line'] as const).map((clue) => ({
    number: 3,
    clicksMax: 3,
    title: `find by ${clue}`,
    roles: ALL,
    async run({ page, open, person }: Walk) {
      const line = `level=info status=200 user_id=${person.id} duration_ms=3`;
      await open({ subject: person.subject, username: person.username, 'log line': line }[clue]);
      await titleOf(page, person.name).waitFor();
    },
  })),
  {
    number: 4,
    clicksMax: 3,
    title: 'see all ways to sign in of a user',
    roles: ALL,
    async run({ page, open, person }) {
      await open(person.email);
      await linkRow(page, 'link', person.subject).getByRole('link', { name: 'Google' }).waitFor();
      await linkRow(page, 'username', person.username).getByRole('link', { name: 'Usernames' }).waitFor();
    },
  },
  {
    number: 5,
    clicksMax: 3,
    title: 'take a Google account away',
    roles: SUPPORT,
    control: ['user', /^Remove \d+$/],
    async run({ page, open, press, person }) {
      await open(person.email);
      await press(`Remove ${person.subject}`);
      await press('Remove');
      await linkRow(page, 'link', person.subject).waitFor({ state: 'detached' });
    },
  },
  {
    number: 6,
    clicksMax: 3,
    title: 'add a username and password',
    roles: EVERYTHING,
    control: ['user', 'Add username'],
    async run({ page, open, press, fill, person, name }) {
      await open(person.email);
      await press('Add username');
      await fill('Username', name);
      await fill('Password', 'correct horse battery staple');
      await press('Create');
      await linkRow(page, 'username', name).waitFor();
    },
  },
  {
    number: 7,
    clicksMax: 3,
    title: 'set a new password',
    roles: EVERYTHING,
    control: ['user', /^Edit \w+\.\w+\.\d+$/],
    async run({ page, open, press, fill, person }) {
      await open(person.email);
      await press(`Edit ${person.username}`);
      await fill('Password (optional)', 'correct horse battery staple');
      await press('Save');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    },
  },
  {
    number: 8,
    title: 'see why a user cannot sign in, and let it try again',
    roles: SUPPORT,
    control: ['user', /^Check passwords again/],
    clicksMax: 3,
    async run({ service, page, open, press, person }) {
      await throttle(service, person);
      await open(person.email);
      const note = page.getByRole('status').filter({ hasText: 'Too many wrong passwords' });
      await note.first().waitFor();
      await press('Check passwords again (three times an hour)');
      await note.first().waitFor({ state: 'detached' });
    },
  },
  {
    number: 9,
    title: 'move a link to another user',
    roles: SUPPORT,
    control: ['user', /^Move \d+$/],
    clicksMax: 6,
    async run({ page, open, press, choose, person, other }) {
      await open(person.email);
      await press(`Move ${person.subject}`);
      await choose(other.email);
      await press('Move');
      await linkRow(page, 'link', person.subject).waitFor({ state: 'detached' });
    },
  },
  {
    number: 9,
    title: 'merge two users',
    roles: EVERYTHING,
    control: ['user', 'Merge into…'],
    clicksMax: 6,
    async run({ page, open, press, choose, person, other, fill }) {
      await open(other.email);
      await press('Merge into…');
      await choose(person.email);
      const dialog = page.getByRole('dialog');
      await fill(dialog.getByLabel(/^Type/), `merge ${other.id.slice(-4)}`);
      await press('Merge');
      await titleOf(page, person.name).waitFor();
      await linkRow(page, 'link', other.subject).waitFor();
    },
  },
  {
    number: 10,
    clicksMax: 4,
    title: 'see who changed a link, and bring it back',
    roles: SUPPORT,
    control: ['user', 'Before and after'],
    async run({ service, page, open, click, press, person }) {
      await changeSubject(service, person, `${person.subject}9`);
      await open(person.email);
      const change = page.getByRole('region', { name: 'History' }).getByRole('listitem').first();
      await change.getByText('console:colleague').waitFor();
      await click(change.getByText('Before and after'));
      await click(change.getByRole('button', { name: 'Restore' }));
      await press('Save');
      await linkRow(page, 'link', person.subject).waitFor();
    },
  },
  {
    number: 11,
    title: 'create a realm with a provider for Entra ID',
    roles: EVERYTHING,
    control: ['realms', 'New realm'],
    async run({ page, goTo, press, fill, name }) {
      const tenant = 'https://login.microsoftonline.com/6731de76-14a6-49ae-97bc-6eba6914391e/v2.0';
      await goTo('Realms');
      await press('New realm');
      await fill('Name', name);
      await press('Create');
      await press('New provider');
      await fill('Name', 'Entra ID');
      await fill('Discovery URL', `${tenant}/.well-known/openid-configuration`);
      await fill('Client ID', '0f2f4d2e-6a0b-4d3b-9a3e-4a8f5d1f2c11');
      await fill('Client secret', 'a secret of the provider');
      await press('Create');
      await titleOf(page, 'Entra ID').waitFor();
    },
  },
  {
    number: 12,
    title: 'create a client with least rights, whose secret is shown once',
    roles: EVERYTHING,
    control: ['clients', 'New client'],
    async run({ page, click, goTo, press, fill, name }) {
      await goTo('Clients and keys');
      await press('New client');
      await fill('Name', name);
      await click(page.getByLabel('users:read'));
      await click(page.getByLabel('Some'));
      await click(page.getByLabel(shop.name));
      await press('Create');
      await press('Copy the secret');
      await press('I have stored it');
      await main(page).getByRole('link').filter({ hasText: name }).waitFor();
    },
  },
  {
    number: 13,
    title: 'rotate a signing key',
    roles: EVERYTHING,
    control: ['clients', 'New key'],
    async run({ page, goTo, press }) {
      await goTo('Clients and keys');
      const keys = page.getByRole('region', { name: 'Signing keys' }).getByRole('listitem');
      await keys.first().waitFor();
      const before = await keys.count();
      await press('New key');
      await press('Create key');
      await keys.nth(before).waitFor();
    },
  },
  {
    number: 14,
    title: 'see a failing webhook, and send again',
    roles: EVERYTHING,
    control: ['webhook', 'Redeliver all'],
    async run({ service, page, click, goTo, press }) {
      const { webhook } = await addTarget(service, startReceiver().url);
      await createDeadLetters(service, webhook.webhookId, 1, shop.realm as Uuid);
      await goTo('Webhooks');
      await click(main(page).locator(`a[href$="${webhook.webhookId}"]`));
      await press('Redeliver all');
      await page.getByRole('region', { name: 'Deliveries' }).getByText('delivered 204').waitFor();
    },
  },
  {
    number: 15,
    title: 'import 1,000 users from CSV',
    roles: EVERYTHING,
    control: ['transfer', 'File of JSON lines, or of users as CSV'],
    async run({ page, goTo, press, name, field }) {
      const rows = Array.from(
        { length: 1_000 },
        (_, row) => `${name}.${row},${name} ${row},${name}.${row}@csv.example`,
      );
      const path = join(freshFolder(), 'users.csv');
      writeFileSync(path, ['No,Full name,E-mail', ...rows, ''].join('\n'));
      await goTo('Import and export');
      await field(main(page).getByLabel('Realm')).selectOption(shop.realm);
      await field(page.getByLabel('File of JSON lines, or of users as CSV')).setInputFiles(path);
      await page
        .getByRole('definition')
        .filter({ hasText: `${name} 0` })
        .waitFor();
      await press('Import');
      await page.getByText('1000 imported, 0 unchanged, 0 replaced, 0 rejected.').waitFor();
    },
  },
  {
    number: 16,
    title: 'export a realm',
    roles: EVERYTHING,
    control: ['transfer', 'Export records as JSON lines'],
    async run({ page, click, goTo, press, field }) {
      await goTo('Import and export');
      await field(main(page).getByLabel('Realm')).selectOption(shop.realm);
      await press('Export records as JSON lines');
      const link = page.getByRole('link', { name: /^Save realm-/ });
      const [download] = await Promise.all([page.waitForEvent('download'), click(link)]);
      const lines = readFileSync(await download.path(), 'utf8').split('\n');
      expect(lines.length).toBeGreaterThan(CROWD / REALMS.length);
    },
  },
  {
    number: 17,
    title: 'erase a person',
    roles: EVERYTHING,
    control: ['user', 'Erase permanently'],
    async run({ page, open, press, person, fill, click }) {
      await open(person.email);
      await press('Erase permanently');
      const dialog = page.getByRole('dialog');
      await fill(dialog.getByRole('textbox'), `erase ${person.id.slice(-4)}`);
      await click(dialog.getByRole('button', { name: 'Erase permanently' }));
      await titleOf(page, 'Users').waitFor();
    },
  },
  {
    number: 18,
    title: 'see whether the service is healthy',
    roles: EVERYTHING,
    control: ['find', 'Health'],
    async run({ page, goTo }) {
      await goTo('Health');
      await page.getByRole('heading', { name: /^(No check fails|\d+ of \d+ checks fail)$/ }).waitFor();
    },
  },
  {
    number: 19,
    title: 'try a call',
    roles: ALL,
    async run({ page, click, goTo, press, openMenu, fill }) {
      await goTo('Try it');
      await titleOf(page, 'authrealm API').waitFor();
      await openMenu();
      await fill(page.getByRole('searchbox', { name: 'Find an operation' }), 'list realms:read');
      await click(page.getByRole('navigation', { name: 'Operations' }).getByRole('link'));
      await click(page.getByRole('link', { name: 'Try it' }));
      await press('Send GET');
      await page.getByRole('region', { name: 'Response' }).getByText(shop.name).waitFor();
    },
  },
  {
    number: 20,
    title: 'let a colleague in to read one realm',
    roles: EVERYTHING,
    control: ['access', 'New invitation'],
    async run({ page, click, goTo, press, fill, name, field }) {
      await goTo('Access');
      await press('New invitation');
      await fill('Name', name);
      await field(page.getByLabel('Role')).selectOption('read');
      await click(page.getByLabel('Some'));
      await click(page.getByRole('checkbox', { name: shop.name }));
      await press('Create link');
      await press('Copy the link');
      await press('I have stored it');
      await page.getByRole('region', { name: 'Open invitations' }).getByText(name).waitFor();
    },
  },
  {
    number: 21,
    title: 'sign a user out everywhere',
    roles: EVERYTHING,
    control: ['user', 'Sign out everywhere'],
    async run({ page, open, press, person, click }) {
      await open(person.email);
      await press('Sign out everywhere');
      const dialog = page.getByRole('dialog');
      await click(dialog.getByRole('button', { name: 'Sign out everywhere' }));
      await dialog.waitFor({ state: 'detached' });
    },
  },
];
