import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { overloaded } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { oidcProfileInfo, realm as realms, user } from '../../src/model/resources.ts';
import type { Store } from '../../src/model/store.ts';
import type { Engine } from '../../src/ops/store/open.ts';
import { createFixture, insertRecord, realmMembers, startService, userMembers } from '../support/service.ts';
import { expectNoErrors, HOSTILE_TEXTS, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** The Find page: one search box for IDs, names, e-mail addresses, links and log lines. */

setDefaultTimeout(BROWSER_TEST_MS);

/** Like several providers: the subject is an ID, and the issuer contains another one. */
const identified = {
  subject: crypto.randomUUID(),
  issuer: `https://login.example.com/${crypto.randomUUID()}/v2.0`,
};

/** Like users created by a program: identifiers inside names and e-mail addresses. */
const made = {
  email: `${crypto.randomUUID()}@example.com`,
  name: `Load test ${crypto.randomUUID()} again`,
};

const service = await startService();
const fixture = await createFixture(service.db);
const { realm, oidcProfile } = fixture;
const members = { ...identified, oidc_profile_id: oidcProfile };
await insertRecord(service.db, oidcProfileInfo, [realm, fixture.user, service.clock.mintId()], members);

describe('a search', () => {
  const base = () => `/v2/authentication-realms/${fixture.realm}/user-authentication-info/${fixture.user}`;
  const clues: readonly [string, () => string][] = [
    ['the ID of the user', () => fixture.user],
    ['the ID of a link', () => fixture.oidcLink],
    ['the ID of a username', () => fixture.passwordLink],
    ['a username, in another letter case', () => fixture.username.toUpperCase()],
    ['a subject', () => fixture.subject],
    ['the beginning of an e-mail address', () => 'jane@'],
    ['the beginning of a name', () => 'jan'],
    ['the beginning of a family name', () => 'do'],
    ['two words in any order', () => 'doe ja'],
    ['the beginning of a username', () => fixture.username.slice(0, -1)],
    ['a piece of a log line', () => `user_id=${fixture.user}`],
    ['a piece of JSON', () => `"user_id":"${fixture.user.toUpperCase()}",`],
    ['a log line', () => `GET /orders 200 user=${fixture.user} request=${crypto.randomUUID()}`],
    ['an API link inside other text', () => `see ${service.url}${base()} please`],
    ['a subject that is an ID', () => identified.subject],
    ['an issuer with a tenant ID before a subject', () => `${identified.issuer} ${identified.subject}`],
    ['an API link', () => `${service.url}${base()}`],
    ['a console link', () => `${service.url}/console#/realms/${fixture.realm}/users/${fixture.user}`],
  ];
  test.each(clues)('Find finds a user by %s', (_, clue) => expectFound(clue(), fixture.user));

  const begun: readonly [string, string][] = [
    ['an e-mail address that begins with an ID', made.email],
    ['the beginning of a name that holds an ID', made.name.slice(0, -' again'.length)],
  ];
  test.each(begun)('Find finds a user by %s', async (_, clue) => {
    const id = service.clock.mintId();
    await insertRecord(service.db, user, [fixture.realm, id], { ...userMembers, ...made });
    await expectFound(clue, id);
  });

  async function expectFound(clue: string, user: Uuid) {
    const window = await openSignedIn(service, '#/', { scope: READ_SCOPE });
    await window.page.getByRole('searchbox').fill(clue);
    const found = window.page.locator(`a[href="#/realms/${fixture.realm}/users/${user}"]`).first();
    await found.waitFor();
    await window.searchesAnswered();
    expect(window.errors).toEqual([]);
    await window.close();
  }
});

test('Find says that it shows the first 25 users when one realm has more matches', async () => {
  const busy = await startService();
  const { realm } = await createFixture(busy.db);
  const write = async (count: number) => {
    for (let made = 0; made < count; made += 1)
      await insertRecord(busy.db, user, [realm, busy.clock.mintId()], { ...userMembers, name: 'Crowd' });
  };
  const window = await openSignedIn(busy, '#/', { scope: READ_SCOPE });
  const box = window.page.getByRole('searchbox');
  await write(25);
  await box.fill('crowd');
  await window.page.getByText('25 found', { exact: true }).waitFor();
  await write(15);
  await box.fill('crow');
  await window.page
    .getByText('Showing the first 25. Type more to narrow the results.', { exact: true })
    .waitFor();
  await expectNoErrors(window);
});

describe('a search over more realms than one request covers', async () => {
  /** IDs of users: two realms may have the same one. */
  const [shared, lastOnly] = [crypto.randomUUID() as Uuid, crypto.randomUUID() as Uuid];

  const many = await startService();
  const count = LIMITS.searchRealmsMax + 1;
  const order = Array.from({ length: count }, () => many.clock.mintId()).sort();
  for (let start = 0; start < count; start += 100)
    await Promise.all(
      order.slice(start, start + 100).map((id) => insertRecord(many.db, realms, [id], realmMembers)),
    );
  const [first, last] = [order[0], order.at(-1)] as [Uuid, Uuid];
  for (const realm of [first, last]) await insertRecord(many.db, user, [realm, shared], userMembers);
  await insertRecord(many.db, user, [last, lastOnly], userMembers);

  /** A window in which follow-up searches (`after_realm`) wait for `goOn`. */
  async function opened() {
    const window = await openSignedIn(many, '#/', { scope: READ_SCOPE });
    const { page } = window;
    const { promise: isLet, resolve: goOn } = Promise.withResolvers<void>();
    await page.route('**/search', async (route) => {
      if (route.request().postData()?.includes('after_realm')) await isLet;
      await route.continue();
    });
    const user = (realm: Uuid, id: Uuid) => page.locator(`a.row[href="#/realms/${realm}/users/${id}"]`);
    const looking = page.getByText('Still searching: not all realms have been searched yet.');
    const notFound = page.getByText('No user found');
    return { window, page, goOn, user, looking, notFound };
  }

  test('Find finds a user in the last realm, and never reports none before', async () => {
    const { window, page, goOn, user, looking, notFound } = await opened();
    await page.getByRole('searchbox').fill(lastOnly);
    await looking.waitFor();
    expect(await notFound.count()).toBe(0);
    goOn();
    await user(last, lastOnly).waitFor();
    await page.getByText('1 found', { exact: true }).waitFor();
    expect(await looking.count()).toBe(0);
    await expectNoErrors(window);
  });

  test('Find shows matches while it searches further realms', async () => {
    const { window, page, goOn, user, looking } = await opened();
    await page.getByRole('searchbox').fill(shared);
    await user(first, shared).waitFor();
    await page.getByText('1 found so far', { exact: true }).waitFor();
    expect(await looking.count()).toBe(1);
    await expectNoErrors(window);
    goOn();
    await user(last, shared).waitFor();
    await page.getByText('2 found', { exact: true }).waitFor();
  });

  test('Find says that no user was found once all realms were searched', async () => {
    const { page, goOn, looking, notFound } = await opened();
    await page.getByRole('searchbox').fill(crypto.randomUUID());
    await looking.waitFor();
    expect(await notFound.count()).toBe(0);
    goOn();
    await notFound.waitFor();
  });
});

describe('a search that fails in part', () => {
  /** Rejects searches for links with a subject while `isBusy`. */
  function subjectsBusy() {
    const gate = { isBusy: false };
    const shedding =
      (search: Store['searchRealms']): Store['searchRealms'] =>
      (resource, request) => {
        if (gate.isBusy && resource === oidcProfileInfo) throw overloaded('QUEUE_FULL');
        return search(resource, request);
      };
    const wrap = (engine: Engine): Engine => {
      const { records, embedded } = engine;
      return {
        ...engine,
        records: { ...records, searchRealms: shedding(records.searchRealms) },
        embedded: embedded && {
          ...embedded,
          searchDelegating: (whole) => shedding(embedded.searchDelegating(whole)),
        },
      };
    };
    return { gate, wrap };
  }

  test('Find reports a busy service once, shows the matches it has, and retries the rest', async () => {
    const { gate, wrap } = subjectsBusy();
    const busy = await startService({}, wrap);
    const clue = crypto.randomUUID();
    const home = await createFixture(busy.db, { subject: clue });
    await insertRecord(busy.db, user, [home.realm, clue as Uuid], userMembers);
    const window = await openSignedIn(busy, '#/', { scope: READ_SCOPE });
    const { page } = window;
    gate.isBusy = true;
    await page.getByRole('searchbox').fill(clue);
    const notice = page.getByText('The service is busy.');
    await notice.waitFor();
    // Two searches fail, one for IDs of links and one for subjects.
    expect(await notice.count()).toBe(1);
    await page.getByText(/Retrying in \d+ s/).waitFor();
    await page.getByRole('button', { name: 'Retry now' }).click();
    // The results of the other searches are shown below the note.
    await page.locator(`a.row[href$="${clue}"]`).waitFor();
    expect(await page.locator('a.row').count()).toBe(1);
    await window.expectError(/status of 503/);
    expect(await window.violations()).toEqual([]);
    gate.isBusy = false;
    await page.locator(`a.row[href$="${home.user}"]`).waitFor();
    await notice.waitFor({ state: 'detached' });
  });

  test('Find retries by itself after the caller has exceeded its rate', async () => {
    const limited = await startService({ clientRate: '5/10' });
    const { username } = await createFixture(limited.db);
    const token = await limited.token(READ_SCOPE);
    const window = await openSignedIn(limited, '#/nowhere', { scope: READ_SCOPE, token });
    const { page } = window;
    for (let spent = 0; spent < 5; spent += 1) await limited.get('/v2/authentication-realms', token);
    await page.evaluate(`location.hash = '#/?q=${username}'`);
    const notice = page.getByText('The service is busy.');
    await notice.waitFor();
    await window.expectError(/status of 429/);
    // It takes several retries: a search sends more requests than the rate permits per second.
    await page.locator('a.row', { hasText: username }).waitFor();
    await notice.waitFor({ state: 'detached' });
  });

  test('Find reports a lost network as a failed read, and retries by itself', async () => {
    const window = await openSignedIn(service, '#/', { scope: READ_SCOPE });
    const { page } = window;
    await page.context().setOffline(true);
    await page.getByRole('searchbox').fill(fixture.username);
    const notice = page.getByText(/The service is unreachable/);
    await notice.waitFor();
    expect(await notice.allTextContents()).toEqual([
      'The service is unreachable. Check your network connection.',
    ]);
    await window.expectError(/ERR_INTERNET_DISCONNECTED/);
    await page.context().setOffline(false);
    await page.locator('a.row', { hasText: fixture.username }).waitFor();
    await notice.waitFor({ state: 'detached' });
    await expectNoErrors(window);
  });
});

test('Find sends its text in request bodies only, and drops the results of earlier texts', async () => {
  const window = await openSignedIn(service, '#/', { scope: READ_SCOPE });
  const { page } = window;
  const requests: string[] = [];
  // A busy service has a search sent again.
  const searches = new Set<string>();
  page.on('request', (request) => {
    requests.push(`${request.url()} ${JSON.stringify(request.headers())}`);
    searches.add(`${request.url()} ${request.postData()}`);
  });
  const box = page.getByRole('searchbox');
  // In one go: a machine that is too slow for a key within 180 ms would search for each beginning of the text.
  await box.evaluate((field, text) => {
    for (let length = 1; length <= text.length; length += 1) {
      Object.assign(field, { value: text.slice(0, length) });
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }
  }, 'nobody at all');
  await box.fill(fixture.username);
  await page.locator('a.row', { hasText: fixture.username }).waitFor();
  expect(requests.length).toBeGreaterThan(0);
  expect(
    requests.filter((request) => request.includes('nobody') || request.includes(fixture.username)),
  ).toEqual([]);
  expect(searches.size).toBeLessThanOrEqual(12);
  expect(await page.getByText('No user found').count()).toBe(0);
  expect(await page.evaluate('location.hash')).toBe(`#/?q=${fixture.username}`);
  await expectNoErrors(window);
  await page.reload();
  await page.locator('a.row', { hasText: fixture.username }).waitFor();
});

test.each(Object.entries({ ...HOSTILE_TEXTS, quotes: `'")(,:|*\\`, star: '**', nothing: '\u200b\u200b' }))(
  'Find says that no user was found for a hostile text: %s',
  async (_, clue) => {
    const window = await openSignedIn(service, '#/', { scope: READ_SCOPE });
    await window.page.getByRole('searchbox').fill(clue);
    await window.page.getByText('No user found').waitFor();
    await expectNoErrors(window);
  },
);
