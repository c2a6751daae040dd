import { describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../src/model/resources.ts';
import { startFaultyProxy } from '../support/faulty_proxy.ts';
import { createRecord, kindOf, PASSWORD, userPath } from '../support/resource_cases.ts';
import { END_USER, signInTokenOf } from '../support/sign_in.ts';
import {
  expectNoErrors,
  expectNoErrorsInAnyView,
  HOSTILE_TEXTS,
  openSignedIn,
  READ_SCOPE,
  WRITE_SCOPE,
} from './console_session.ts';
import type { ConsoleWindow } from './console_window.ts';
import { openShop } from './open_console.ts';

/** Links that move to another user, alone or with a merge. */

const { service, shop } = await openShop();
const token = await service.token(WRITE_SCOPE);
const proxy = await startFaultyProxy(service.url);

const pathOfUser = (id: string) => userPath({ ...shop, user: id });
const NEW_PASSWORD = 'another long password';
const ISSUER = 'https://login.example.com';

let people = 0;

/** A person whose links are made from these subjects and usernames; its name is unique. */
async function createPerson(subjects: readonly string[] = [], usernames: readonly string[] = []) {
  people += 1;
  const name = `Person Number${people}x`;
  const email = `number${people}x@example.com`;
  const data = { name, email };
  const { id } = await createRecord(service, token, { kind: kindOf(user), home: shop, data });
  for (const subject of subjects) await createLink(id, subject);
  for (const username of usernames) {
    const home = { ...shop, user: id };
    await createRecord(service, token, { kind: kindOf(passwordProfileInfo), home, data: { username } });
  }
  return { id, name, email };
}

type Person = Awaited<ReturnType<typeof createPerson>>;

async function createLink(owner: string, subject: string) {
  const data = { subject, issuer: ISSUER };
  const home = { ...shop, user: owner };
  return createRecord(service, token, { kind: kindOf(oidcProfileInfo), home, data });
}

interface WireLink {
  readonly id: string;
  readonly subject?: string;
  readonly username?: string;
}

/** The links of a user; undefined if there is no such user. */
async function linksOf({ id }: Person): Promise<readonly WireLink[] | undefined> {
  const answer = await service.get(
    `${pathOfUser(id)}?include=oidc_profile_infos,password_profile_infos`,
    token,
  );
  if (answer.status === 404) return undefined;
  return ((await answer.json()) as { included: readonly WireLink[] }).included;
}

/** Their subjects and usernames, sorted. */
const namesOf = async (person: Person) =>
  (await linksOf(person))?.map(({ subject, username }) => subject ?? username).toSorted();

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click();
const openUser = ({ id }: Person, scope = WRITE_SCOPE, url = service.url) =>
  openSignedIn({ url, token: service.token }, `#/realms/${shop.realm}/users/${id}`, { scope });

/** Opens the dialog that a button opens, and finds the other user by e-mail address and Enter. */
async function choose({ page }: ConsoleWindow, button: string, target: Person): Promise<void> {
  await press(page, button);
  await page.getByRole('dialog').getByRole('searchbox').fill(target.email);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Choose another user' }).waitFor();
  await shown(page, target.email).waitFor();
}

/** A person or a link in the dialog. */
const shown = (page: Page, text: string) =>
  page.getByRole('dialog').getByRole('definition').filter({ hasText: text });

const chooseForLink = (window: ConsoleWindow, name: string, target: Person) =>
  choose(window, `Move ${name}`, target);

async function chooseForMerge(window: ConsoleWindow, from: Person, target: Person): Promise<void> {
  await choose(window, 'Merge into…', target);
  await window.page.getByLabel(/^Type/).fill(`merge ${from.id.slice(-4)}`);
}

const newPassword = (page: Page, username: string) => page.getByLabel(`New password of ${username}`);

describe('the move of a link', () => {
  test('support moves the link of a provider: it gets a new ID, and the rest of both users stays', async () => {
    const [from, to] = [
      await createPerson(['moves', 'stays'], ['moving.jane']),
      await createPerson(['theirs']),
    ];
    const before = (await linksOf(from))?.find(({ subject }) => subject === 'moves');
    const window = await openUser(from, 'support');
    const { page } = window;
    await chooseForLink(window, 'moves', to);
    await shown(page, from.email).waitFor();
    await shown(page, 'Company login: moves').waitFor();
    await page.getByText('The link gets a new ID.', { exact: true }).waitFor();
    await expectNoErrorsInAnyView(window);
    await press(page, 'Move');
    await page.getByText('The link was moved.').waitFor();
    await page.getByRole('row', { name: 'link moves' }).waitFor({ state: 'detached' });
    expect([await namesOf(from), await namesOf(to)]).toEqual([
      ['moving.jane', 'stays'],
      ['moves', 'theirs'],
    ]);
    expect((await linksOf(to))?.map(({ id }) => id)).not.toContain(before?.id ?? '');
    await expectNoErrors(window);
  });

  test('a username moves with a new password of enough characters, which stays while another user is chosen', async () => {
    const [from, to] = [await createPerson([], ['jane.moves']), await createPerson()];
    const window = await openUser(from);
    const { page } = window;
    await chooseForLink(window, 'jane.moves', await createPerson());
    const move = page.getByRole('button', { name: 'Move', exact: true });
    expect(await move.isDisabled()).toBe(true);
    await page.getByText('The username gets a new ID.').waitFor();
    await newPassword(page, 'jane.moves').fill('short');
    await page.getByText('Enter at least 8 characters, not 5.').waitFor();
    expect(await move.isDisabled()).toBe(true);
    await expectNoErrors(window);
    await newPassword(page, 'jane.moves').fill(NEW_PASSWORD);
    await press(page, 'Choose another user');
    await page.getByRole('dialog').getByRole('searchbox').fill(to.email);
    await page.keyboard.press('Enter');
    await shown(page, to.email).waitFor();
    await move.click();
    await page.getByText('No links or usernames yet').waitFor();
    expect([await namesOf(from), await namesOf(to)]).toEqual([[], ['jane.moves']]);
    expect(await ownerByPassword('jane.moves', PASSWORD)).toBeUndefined();
    expect(await ownerByPassword('jane.moves', NEW_PASSWORD)).toBe(to.id);
    await expectNoErrors(window);
  });

  test('a hostile subject moves unchanged, and its script does not run', async () => {
    const [from, to] = [await createPerson([HOSTILE_TEXTS.image]), await createPerson()];
    const window = await openUser(from);
    await press(window.page, /^Move /);
    await window.page.getByRole('dialog').getByRole('searchbox').fill(to.name);
    await window.page.getByRole('dialog').getByRole('button', { name: to.email }).click();
    await press(window.page, 'Move');
    await window.page.getByText('No links or usernames yet').waitFor();
    expect(await namesOf(to)).toEqual([HOSTILE_TEXTS.image]);
    await expectNoErrors(window);
  });

  test('the search for the other user offers neither the user nor people of other realms', async () => {
    const from = await createPerson(['searched']);
    const realms = '/v2/authentication-realms';
    const made = await service.post(realms, token, { data: { type: 'authentication-realm', name: 'Else' } });
    const realm = ((await made.json()) as { data: { id: string } }).data.id;
    const data = { name: from.name, email: 'elsewhere@example.com' };
    await createRecord(service, token, { kind: kindOf(user), home: { ...shop, realm }, data });
    const window = await openUser(from);
    await press(window.page, 'Move searched');
    await window.page.getByRole('dialog').getByRole('searchbox').fill(from.name);
    await window.page.getByRole('dialog').getByText('No user found').waitFor();
    await expectNoErrorsInAnyView(window);
  });

  test('a link whose response was lost moves once: the second attempt ends as the first', async () => {
    const [from, to] = [await createPerson(['lost']), await createPerson()];
    const window = await openUser(from, WRITE_SCOPE, proxy.url);
    const { page } = window;
    await chooseForLink(window, 'lost', to);
    proxy.injectFaults(/^POST .*\/batch$/, { cut: 'inside' });
    await press(page, 'Move');
    await page.getByText('Your change may have been saved').waitFor();
    await press(page, 'Move');
    await page.getByText('The link was moved.').waitFor();
    expect([await namesOf(from), await namesOf(to)]).toEqual([[], ['lost']]);
    await window.expectError(/ERR_/);
    await expectNoErrors(window);
  });
});

describe('a merge', () => {
  test('a merge moves all links, deletes the first user, and opens the page of the second', async () => {
    const from = await createPerson(['one', 'two'], ['jane.merges']);
    const to = await createPerson(['three']);
    const window = await openUser(from);
    const { page } = window;
    await chooseForMerge(window, from, to);
    const merge = page.getByRole('button', { name: 'Merge', exact: true });
    expect(await merge.isDisabled()).toBe(true);
    await newPassword(page, 'jane.merges').fill(NEW_PASSWORD);
    await expectNoErrorsInAnyView(window);
    await merge.click();
    await page.getByRole('heading', { name: to.name, level: 1 }).waitFor();
    await page.getByRole('row', { name: 'link one' }).waitFor();
    expect([await namesOf(from), await namesOf(to)]).toEqual([
      undefined,
      ['jane.merges', 'one', 'three', 'two'],
    ]);
    expect(await ownerByPassword('jane.merges', NEW_PASSWORD)).toBe(to.id);
    await expectNoErrors(window);
  });

  test('a merge shows a link that was added meanwhile before it moves it', async () => {
    const [from, to] = [await createPerson(['early']), await createPerson()];
    const window = await openUser(from);
    const { page } = window;
    await chooseForMerge(window, from, to);
    await createLink(from.id, 'late');
    await press(page, 'Merge');
    await page.getByText('changed by someone else in the meantime').waitFor();
    await shown(page, 'Company login: late').waitFor();
    expect([await namesOf(from), await namesOf(to)]).toEqual([['early', 'late'], []]);
    await press(page, 'Merge');
    await page.getByRole('heading', { name: to.name, level: 1 }).waitFor();
    expect([await namesOf(from), await namesOf(to)]).toEqual([undefined, ['early', 'late']]);
    await window.expectError(/status of 412/);
    await expectNoErrors(window);
  });

  const many = (count: number, word: string) =>
    Array.from({ length: count }, (_, index) => `${word}${index}`);

  test.each([
    ['over 40 links', many(41, 'link'), []],
    ['over four usernames', [], many(5, 'name')],
  ])('a user with %s is not merged, and the dialog says why', async (_, subjects, usernames) => {
    const [from, to] = [await createPerson(subjects, usernames), await createPerson()];
    const window = await openUser(from);
    const { page } = window;
    await chooseForMerge(window, from, to);
    await page.getByText('At most 40 links and usernames move at once, 4 of them usernames.').waitFor();
    expect(await page.getByRole('button', { name: 'Merge', exact: true }).isDisabled()).toBe(true);
    expect(await page.getByLabel(/^New password/).count()).toBe(0);
    await expectNoErrorsInAnyView(window);
    await window.close();
  });

  test('a user with 40 links is merged', async () => {
    const [from, to] = [await createPerson(many(36, 'full'), many(4, 'full')), await createPerson()];
    const window = await openUser(from);
    const { page } = window;
    await chooseForMerge(window, from, to);
    for (const username of many(4, 'full')) await newPassword(page, username).fill(NEW_PASSWORD);
    // Next to busy processes four hashes may be late. Then nothing has moved, and the dialog keeps what was typed.
    const busy = page.getByText('The service is busy.');
    do {
      await press(page, 'Merge');
      await page.getByRole('heading', { name: to.name, level: 1 }).or(busy).first().waitFor();
    } while (await busy.isVisible());
    expect([await linksOf(from), (await linksOf(to))?.length]).toEqual([undefined, 40]);
  });
});

describe('a refused move', () => {
  const NOTHING = 'Nothing was moved: one of the two users, or a link or username, no longer exists.';

  test('a link that another user has now stays with that user', async () => {
    const [from, to] = [await createPerson(['contended']), await createPerson()];
    const other = await createPerson();
    const window = await openUser(from);
    await chooseForLink(window, 'contended', to);
    const [link] = (await linksOf(from)) ?? [];
    const path = `${pathOfUser(from.id)}/user-authentication-oidc-profile-info/${link?.id}`;
    expect((await service.del(path, token)).status).toBe(204);
    await createLink(other.id, 'contended');
    await press(window.page, 'Move');
    await window.page.getByText(NOTHING).waitFor();
    expect([await namesOf(from), await namesOf(to), await namesOf(other)]).toEqual([[], [], ['contended']]);
    await window.expectError(/status of 404/);
    await expectNoErrors(window);
    await press(window.page, 'Cancel');
    await window.page.getByText('No links or usernames yet').waitFor();
  });

  test.each([
    ['a link', chooseForOne, 'Move'],
    ['a merge', chooseForMerge, 'Merge'],
  ])(
    'the target of %s vanishes under the dialog: nothing moves, and another one can be chosen',
    async (...row) => {
      const [, open, verb] = row;
      const [from, gone, to] = [
        await createPerson([`kept for ${verb}`]),
        await createPerson(),
        await createPerson(),
      ];
      const window = await openUser(from);
      const { page } = window;
      await open(window, from, gone);
      expect((await service.del(pathOfUser(gone.id), token)).status).toBe(204);
      await press(page, verb);
      await page.getByText(NOTHING).waitFor();
      expect(await namesOf(from)).toEqual([`kept for ${verb}`]);
      await window.expectError(/status of 404/);
      await expectNoErrors(window);
      await press(page, 'Choose another user');
      await page.getByRole('dialog').getByRole('searchbox').fill(to.email);
      await page.keyboard.press('Enter');
      await shown(page, to.email).waitFor();
      await window.close();
    },
  );

  async function chooseForOne(window: ConsoleWindow, _: Person, target: Person): Promise<void> {
    await chooseForLink(window, 'kept for Move', target);
  }

  test('a link that was changed meanwhile is shown as it is now before it moves', async () => {
    const [from, to] = [await createPerson(['before']), await createPerson()];
    const window = await openUser(from);
    const { page } = window;
    await chooseForLink(window, 'before', to);
    const [link] = (await linksOf(from)) ?? [];
    const path = `${pathOfUser(from.id)}/user-authentication-oidc-profile-info/${link?.id}`;
    const data = { type: 'user_authentication_oidc_profile_info', subject: 'after' };
    expect((await service.put(path, token, { data })).status).toBe(200);
    await press(page, 'Move');
    await shown(page, 'Company login: after').waitFor();
    expect([await namesOf(from), await namesOf(to)]).toEqual([['after'], []]);
    await press(page, 'Move');
    await page.getByText('No links or usernames yet').waitFor();
    expect([await namesOf(from), await namesOf(to)]).toEqual([[], ['after']]);
    await window.expectError(/status of 412/);
    await expectNoErrors(window);
  });
});

describe('the rights to move', () => {
  /** The buttons of the page of a user that move links. */
  async function offered(scope: string): Promise<readonly string[]> {
    const window = await openSignedIn(service, `#/realms/${shop.realm}/users/${shop.user}`, { scope });
    await window.page.getByRole('heading', { name: 'How this user signs in' }).waitFor();
    await window.settled();
    const buttons = window.page.getByRole('button', { name: /^(Move|Merge)/ });
    const names = await buttons.evaluateAll((all) => all.map((each) => each.ariaLabel ?? each.textContent));
    await expectNoErrors(window);
    await window.close();
    return names.map((name) => name.trim().replace('Move ', '')).toSorted();
  }

  const SUBJECTS = ['00u1a2b3c4d5e6f7', 'auth0|5f7c8ec7c33c6c004bbafe82', 'jdoe@corp.example'];

  test.each([
    ['all write scopes', WRITE_SCOPE, [...SUBJECTS, 'Merge into…', 'jane.doe']],
    ['the role support', 'support', SUBJECTS],
    ['read scopes', READ_SCOPE, []],
    ['write scopes of users alone', `${READ_SCOPE} users:write`, []],
    [
      'write scopes but no sight of usernames',
      'realms:read profiles:read users:read users:write oidc-profile-infos:read oidc-profile-infos:write password-profile-infos:write',
      SUBJECTS,
    ],
  ])('a session with %s is offered the moves that it may make', async (_, scope, expected) => {
    expect(await offered(scope)).toEqual(expected.toSorted());
  });

  test('the API refuses support a batch that moves a username or deletes a user', async () => {
    const support = await service.token('support');
    const from = await createPerson([], ['not.by.support']);
    const [link] = (await linksOf(from)) ?? [];
    const username = `${pathOfUser(from.id)}/user-authentication-password-profile-info/${link?.id}`;
    const batch = `/v2/authentication-realms/${shop.realm}/batch`;
    for (const path of [username, pathOfUser(from.id)]) {
      const answer = await service.post(batch, support, { requests: [{ method: 'DELETE', path }] });
      expect(answer.status).toBe(403);
    }
    expect(await namesOf(from)).toEqual(['not.by.support']);
  });
});

/** The user that signs in with a password; undefined if it is wrong. */
async function ownerByPassword(username: string, password: string): Promise<string | undefined> {
  const path = `/v2/authentication-realms/${shop.realm}/password-profiles/${shop.passwordProfile}/check`;
  const data = { type: 'password_check', username, password };
  const answer = await service.post(path, await signInTokenOf(service), { data }, END_USER);
  const { relationships } = ((await answer.json()) as PasswordCheck).data;
  return relationships?.user_authentication_info.data.id;
}

interface PasswordCheck {
  readonly data: {
    readonly relationships?: {
      readonly user_authentication_info: { readonly data: { readonly id: string } };
    };
  };
}
