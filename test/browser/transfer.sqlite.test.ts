import { describe, expect, test } from 'bun:test';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseCsvMap } from '../../src/ops/transfer/csv_users.ts';
import { createLink } from '../support/console_sign_in.ts';
import { startFaultyProxy } from '../support/faulty_proxy.ts';
import { importCounts, type Json, mintId, realmLines, runImport } from '../support/import_fixtures.ts';
import { freshFolder } from '../support/service.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';
import { expectNoErrors, openSignedIn, signInByLink, WRITE_SCOPE } from './console_session.ts';
import { type ConsoleWindow, openWindow, VIEWS } from './console_window.ts';
import { openShop } from './open_console.ts';

/** Import and export on the page of the console. */

const { service, shop } = await openShop();
const SCOPE = `${WRITE_SCOPE} transfer`;
const PLACE = '#/transfer';
const IMPORT = /^POST \/admin\/v1\/import\?/;

const open = (fragment = PLACE, scope = SCOPE) => openSignedIn(service, fragment, { scope });

/** A realm without records. */
async function emptyRealm(): Promise<string> {
  const { ids, lines } = realmLines();
  await runImport(service.db, [lines.realm]);
  return ids.realm;
}

async function choose({ page }: ConsoleWindow, text: string | Uint8Array, name = 'users.csv') {
  const path = join(freshFolder(), name);
  writeFileSync(path, text);
  await page.getByLabel('File of JSON lines, or of users as CSV').setInputFiles(path);
  return path;
}

const press = ({ page }: ConsoleWindow, name: string) =>
  page.getByRole('button', { name, exact: true }).click();

async function saved({ page }: ConsoleWindow, name: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: `Save ${name}` }).click(),
  ]);
  expect(download.suggestedFilename()).toBe(name);
  return readFileSync(await download.path(), 'utf8');
}

const ended = ({ page }: ConsoleWindow, words: string) => page.getByText(words, { exact: true }).waitFor();

async function usersOf(realm: string): Promise<readonly Json[]> {
  const path = `/v2/authentication-realms/${realm}/user-authentication-info?page%5Blimit%5D=100`;
  const answer = await service.get(path, await service.token('users:read'));
  return ((await answer.json()) as { data: readonly Json[] }).data;
}

const userLines = (realm_id: string, count: number): readonly Json[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ type: 'user_authentication_info', realm_id, id: mintId() },
    ...{ name: `Person ${index}`, email: `person${index}@example.com` },
  }));
const textOf = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

const CSV = `No,First name,Last name,E-mail,Blocked,Points
1,Jane,"Doe, Dr.",jane@example.com,false,7
2,Bo,,bo@example.com,true,1
,,,,,
3,Ayşe,Yıldırım,ayse@example.com,false,2
4,Cy,Twombly,cy@example.com,false,3
`;

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('users of a CSV file are shown before anything is sent, imported, and unchanged by the saved map', async () => {
    const realm = await emptyRealm();
    const window = await openSignedIn(service, `${PLACE}?realm=${realm}`, { scope: SCOPE, view });
    const { page } = window;
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') sent.push(request.url());
    });
    await choose(window, `\ufeff${CSV.replaceAll('\n', '\r\n')}`);
    const people = page.locator('dl');
    await people.nth(2).waitFor();
    expect(await people.allTextContents()).toEqual([
      'ID1NameJane Doe, Dr.Given nameJaneFamily nameDoe, Dr.E-mailjane@example.comDisabledfalse',
      'ID2NameBoGiven nameBoFamily nameE-mailbo@example.comDisabledtrue',
      'ID3NameAyşe YıldırımGiven nameAyşeFamily nameYıldırımE-mailayse@example.comDisabledfalse',
    ]);
    await expectNoErrors(window);
    const map = await saved(window, 'map.json');
    expect(sent).toEqual([]);
    await press(window, 'Import');
    await ended(window, '4 imported, 0 unchanged, 0 replaced, 0 rejected.');
    await expectNoErrors(window);
    const users = (await usersOf(realm)).map(({ name, email, enabled = true }) => [name, email, enabled]);
    expect(users.sort()).toEqual([
      ['Ayşe Yıldırım', 'ayse@example.com', true],
      ['Bo', 'bo@example.com', false],
      ['Cy Twombly', 'cy@example.com', true],
      ['Jane Doe, Dr.', 'jane@example.com', true],
    ]);
    const again = await runImport(service.db, Buffer.from(CSV), { map: parseCsvMap(map) });
    expect(again.counts).toEqual(importCounts(0, 4, 0, 0));
    expect(JSON.parse(map)).toEqual({
      columns: {
        No: ['id'],
        'First name': ['name', 'given_name'],
        'Last name': ['name', 'family_name'],
        'E-mail': ['email'],
        Blocked: ['disabled'],
      },
      constants: { realm_id: realm },
    });
  });
});

test('another column than the proposed one can be chosen, and none', async () => {
  const realm = await emptyRealm();
  const window = await open(`${PLACE}?realm=${realm}`);
  const { page } = window;
  await choose(window, 'Number,Name,Mail,Second mail,Status\n1,Ann,ann@old.example,ann@new.example,x\n');
  await page.getByLabel('E-mail', { exact: true }).selectOption('Second mail');
  await page.getByLabel('Status', { exact: true }).selectOption('');
  await press(window, 'Import');
  await ended(window, '1 imported, 0 unchanged, 0 replaced, 0 rejected.');
  expect(await usersOf(realm)).toMatchObject([{ name: 'Ann', email: 'ann@new.example' }]);
  await expectNoErrors(window);
});

const UNREADABLE: readonly (readonly [content: string | Buffer, words: string])[] = [
  ['', 'This file is empty.'],
  ['\ufeff\n\r\n', 'This file is empty.'],
  ['id;name;email\n1;Ann;a@example.com\n', 'with commas between the names of columns'],
  ['id,"name,email\n1,Ann,a@example.com\n', 'with commas between the names of columns'],
  [Buffer.from('id,pr\xe9nom,email\n', 'latin1'), 'The header row must be UTF-8'],
];

test.each(UNREADABLE)(
  'a file without a header row that can be read is not offered for import: %j',
  async (content, words) => {
    const window = await open();
    await choose(window, content);
    await window.page.getByText(words).waitFor();
    expect(await window.page.getByRole('button', { name: 'Import', exact: true }).count()).toBe(0);
    await expectNoErrors(window);
  },
);

test('a dry run counts and lists rejected lines, stores nothing, and its list is saved as a file', async () => {
  const realm = await emptyRealm();
  const [stored = {}, ...others] = userLines(realm, 24);
  await runImport(service.db, [stored]);
  const window = await open();
  const { page } = window;
  const wrong = others.map(({ email: _, ...line }) => line);
  await choose(window, textOf([{ ...stored, name: 'Renamed' }, ...wrong]), 'users.ndjson');
  await press(window, 'Dry run');
  await ended(window, '0 imported, 0 unchanged, 0 replaced, 24 rejected.');
  await page.getByLabel('Update existing records that differ').check();
  await press(window, 'Dry run');
  await ended(window, '0 imported, 0 unchanged, 1 replaced, 23 rejected.');
  await page.getByText('A dry run, which changed nothing:').waitFor();
  const list = page.getByRole('list', { name: 'Rejected lines' });
  expect(await list.getByRole('listitem').count()).toBe(20);
  expect((await list.getByRole('listitem').first().textContent())?.trim()).toBe('Line 2: email is missing');
  const rows = (await saved(window, 'users.ndjson.rejected.csv')).trim().split('\r\n');
  expect([rows.length, rows.at(-1)]).toEqual([23, '"24","email is missing"']);
  expect((await usersOf(realm)).map(({ name }) => name)).toEqual([stored.name]);
  await expectNoErrors(window);
  await press(window, 'Import');
  await ended(window, '0 imported, 0 unchanged, 1 replaced, 23 rejected.');
  expect((await usersOf(realm)).map(({ name }) => name)).toEqual(['Renamed']);
});

test('an exported file is that of the service, of one realm or of all', async () => {
  const window = await open(`${PLACE}?realm=${shop.realm}`);
  const token = await service.token('transfer');
  const answerOf = async (query: string) => (await service.get(`/admin/v1/export?${query}`, token)).text();
  await press(window, 'Export records as JSON lines');
  const one = await answerOf(`realm=${shop.realm}`);
  expect(await saved(window, `realm-${shop.realm}.ndjson`)).toBe(one);
  await press(window, 'Export users as CSV');
  const users = await answerOf(`format=csv&realm=${shop.realm}`);
  expect(await saved(window, `realm-${shop.realm}.csv`)).toBe(users);
  await expectNoErrors(window);
  await window.goto('#/');
  await window.goto(PLACE);
  await press(window, 'Export records as JSON lines');
  const all = await answerOf('');
  expect(all).toContain(one.split('\n')[0] ?? '');
  expect(await saved(window, 'realm-all.ndjson')).toBe(all);
  await expectNoErrors(window);
});

test('a file that has changed since it was chosen is not imported', async () => {
  const realm = await emptyRealm();
  const window = await open();
  const path = await choose(window, textOf(userLines(realm, 1)), 'users.ndjson');
  await window.page.getByRole('button', { name: 'Import', exact: true }).waitFor();
  writeFileSync(path, textOf(userLines(realm, 2)));
  // Browsers compare seconds.
  utimesSync(path, 1, 1);
  await press(window, 'Import');
  await window.page.getByText('The file has changed, or cannot be read: choose it again.').waitFor();
  // Browsers report no change for the same path unless the field was emptied.
  const [chooser] = await Promise.all([
    window.page.waitForEvent('filechooser'),
    window.page.getByLabel('File of JSON lines, or of users as CSV').click(),
  ]);
  await chooser.setFiles(path);
  await press(window, 'Import');
  await ended(window, '2 imported, 0 unchanged, 0 replaced, 0 rejected.');
});

test('an import during another one is reported as busy, with the reason', async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const headers = { Authorization: `Bearer ${await service.token('transfer')}` };
  const first = fetch(`${service.url}/admin/v1/import`, { method: 'POST', headers, body: readable });
  const realm = await emptyRealm();
  const line = textOf(userLines(realm, 250));
  await writer.write(Buffer.from(line));
  while ((await usersOf(realm)).length === 0) await Bun.sleep(5);
  const window = await open();
  await choose(window, textOf(userLines(realm, 1)), 'users.ndjson');
  await press(window, 'Import');
  await window.page.getByText('The service is busy.').waitFor();
  await window.page.getByText('another one is in progress').waitFor();
  await window.expectError(/429/);
  await expectNoErrors(window);
  await writer.close();
  expect((await first).status).toBe(200);
  await press(window, 'Import');
  await ended(window, '1 imported, 0 unchanged, 0 replaced, 0 rejected.');
});

describe('an import through a proxy', async () => {
  const proxy = await startFaultyProxy(service.url);
  const through = { url: proxy.url, token: service.token };
  const openHere = async () => {
    const realm = await emptyRealm();
    const window = await openSignedIn(through, PLACE, { scope: SCOPE });
    await choose(window, textOf(userLines(realm, 3)), 'users.ndjson');
    return { window, realm };
  };

  test('an import that the service ends shows the reason once, with the first line that was not imported', async () => {
    const { window } = await openHere();
    const detail = 'The file is over 1073741824 bytes: line 251 is the first that was not imported';
    proxy.injectFaults(IMPORT, {
      status: 413,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ errors: [{ status: '413', title: 'x', detail }] }),
    });
    await press(window, 'Import');
    await window.page.getByText(`The service rejected the request. ${detail}.`, { exact: true }).waitFor();
    expect(await window.page.getByText(detail).count()).toBe(1);
    await window.expectError(/413/);
    await expectNoErrors(window);
  });

  test('a 413 of the proxy itself says that a proxy may refuse the file', async () => {
    const { window } = await openHere();
    proxy.injectFaults(IMPORT, { status: 413, body: '<h1>413</h1>' });
    await press(window, 'Import');
    await window.page.getByText('A proxy may limit the size of files.').waitFor();
    await window.expectError(/413/);
    await expectNoErrors(window);
  });

  test('an import whose answer is cut off may have been done, and is not sent again; a dry run changed nothing', async () => {
    const { window, realm } = await openHere();
    const sent = () => proxy.requests.filter(({ method, path }) => IMPORT.test(`${method} ${path}`)).length;
    const before = sent();
    proxy.injectFaults(IMPORT, { cut: 'inside' });
    await press(window, 'Import');
    await window.page.getByText('Your change may have been saved: check before you try again.').waitFor();
    expect([sent() - before, (await usersOf(realm)).length]).toEqual([1, 3]);
    await window.expectError(/ERR_/);
    proxy.injectFaults(IMPORT, { cut: 'inside' });
    await press(window, 'Dry run');
    await window.page.getByText('The service is unreachable. Check your network connection.').waitFor();
    await window.expectError(/ERR_/);
    await expectNoErrors(window);
  });
});

describe('an import over a connection', async () => {
  const proxy = await startTcpProxy(Number(new URL(service.url).port));
  const through = { url: `http://127.0.0.1:${proxy.port}`, token: service.token };

  test('after a disconnect the imported lines stay, and the same file completes the import', async () => {
    const realm = await emptyRealm();
    // More than the buffers of a connection hold.
    const long = { given_name: 'x'.repeat(255), middle_name: 'y'.repeat(255), family_name: 'z'.repeat(255) };
    const lines = userLines(realm, 20_000).map((line) => ({ ...line, ...long }));
    const window = await openSignedIn(through, PLACE, { scope: SCOPE });
    await choose(window, textOf(lines), 'users.ndjson');
    const token = await service.token('transfer');
    // A browser sends a request once more if the connection was used before.
    proxy.cut();
    await press(window, 'Import');
    while ((await usersOf(realm)).length === 0) await Bun.sleep(5);
    proxy.cut();
    await window.page.getByText('The service is unreachable.').waitFor();
    await window.expectError(/ERR_/);
    await expectNoErrors(window);
    const isBusy = async () =>
      (await service.post('/admin/v1/import', token, Buffer.from(''))).status === 429;
    while (await isBusy()) await Bun.sleep(5);
    await press(window, 'Import');
    const end = window.page.getByText(/^\d+ imported, \d+ unchanged, 0 replaced, 0 rejected\.$/);
    await end.waitFor();
    const [imported = 0, unchanged = 0] = ((await end.textContent()) ?? '').match(/\d+/g)?.map(Number) ?? [];
    expect(unchanged).toBeWithin(250, lines.length);
    expect(imported + unchanged).toBe(lines.length);
  });

  test('a running import is cancelled by its button, and stores nothing more', async () => {
    const realm = await emptyRealm();
    const window = await openSignedIn(through, PLACE, { scope: SCOPE });
    await choose(window, textOf(userLines(realm, 3)), 'users.ndjson');
    await window.page.getByRole('button', { name: 'Import', exact: true }).waitFor();
    proxy.stall();
    await press(window, 'Import');
    await window.page.getByRole('dialog', { name: 'In progress' }).waitFor();
    await expectNoErrors(window);
    await press(window, 'Cancel');
    await window.page.getByText('Cancelled.').waitFor();
    // The page says so before the browser closes the connection, and a browser sends a request of a lost connection once more.
    while (proxy.isHeld('/admin/v1/import')) await Bun.sleep(5);
    proxy.resume();
    expect(await usersOf(realm)).toEqual([]);
  });
});

/** An export of Anna, which waits until `answer` is called. */
async function startExport() {
  const window = await openWindow(service.url);
  const { page } = window;
  await page.clock.install();
  await signInByLink(window, service, SCOPE);
  await window.goto(`${PLACE}?realm=${shop.realm}`);
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  await page.route('**/admin/v1/export?*', async (route) => {
    const response = await route.fetch();
    await promise;
    await route.fulfill({ response }).catch(() => undefined);
  });
  await press(window, 'Export users as CSV');
  await page.getByRole('dialog', { name: 'In progress' }).waitFor();
  return { window, page, answer };
}

async function followLink({ page }: ConsoleWindow, label: string): Promise<void> {
  const { code } = await createLink(service, { scope: SCOPE, label });
  await page.evaluate(`location.hash = '#code=${code}'`);
}

test('an export continues while the sign-in of the same user covers its page', async () => {
  const { window, page, answer } = await startExport();
  await page.clock.fastForward(1_000_000);
  const signIn = page.getByRole('dialog', { name: 'Sign in to the console' });
  await signIn.waitFor();
  answer();
  await followLink(window, 'Anna at the desk');
  await signIn.waitFor({ state: 'detached' });
  expect(await saved(window, `realm-${shop.realm}.csv`)).toContain(shop.user);
  await expectNoErrors(window);
});

test('an export ends when another user signs in, who is not offered its file', async () => {
  const { window, page, answer } = await startExport();
  await followLink(window, 'Ben');
  await page.getByRole('region', { name: 'Session' }).getByText('Ben', { exact: true }).waitFor();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  answer();
  await window.settled();
  expect(await page.getByRole('link', { name: /^Save/ }).count()).toBe(0);
  await expectNoErrors(window);
});

test('a session limited to some realms imports users into these alone', async () => {
  const [own, other] = [await emptyRealm(), await emptyRealm()];
  const window = await openSignedIn(service, `${PLACE}?realm=${own}`, { scope: SCOPE, realms: [own] });
  await choose(window, textOf([...userLines(other, 1), ...userLines(own, 1)]), 'users.ndjson');
  await press(window, 'Import');
  await ended(window, '1 imported, 0 unchanged, 0 replaced, 1 rejected.');
  await window.page.getByText('Line 1: its authentication-realm does not exist').waitFor();
  expect([(await usersOf(own)).length, (await usersOf(other)).length]).toEqual([1, 0]);
  await expectNoErrors(window);
});
