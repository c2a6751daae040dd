import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseUuid, type Uuid } from '../../src/model/id.ts';
import { DESCRIPTIONS } from '../../src/model/resources.ts';
import { exportRecords } from '../../src/ops/transfer/export.ts';
import { freshFolder, type Service, startService } from '../support/service.ts';
import { expectNoErrors, HOSTILE_TEXTS, openSignedIn, READ_SCOPE, WRITE_SCOPE } from './console_session.ts';
import { type ConsoleWindow, LONG_WAIT_MS, VIEWS } from './console_window.ts';
import { openShop } from './open_console.ts';

/** Export and import of realms in the browser. */

const PLACE = '#/transfer';
const FILE = 'File written by authrealm export';

const { service, shop } = await openShop();

type Line = Readonly<Record<string, unknown>> & { readonly id: string; readonly type: string };

function linesIn(text: string): readonly Line[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
}

async function choose({ page }: ConsoleWindow, text: string, name = 'realm.ndjson'): Promise<void> {
  const path = join(freshFolder(), name);
  writeFileSync(path, text);
  await page.getByLabel(FILE).setInputFiles(path, { timeout: LONG_WAIT_MS });
}

async function saved({ page }: ConsoleWindow, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button }).click(),
  ]);
  return readFileSync(await download.path(), 'utf8');
}

/** Starts the import of the chosen file, and waits until it ends. */
async function run({ page }: ConsoleWindow): Promise<void> {
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByText('Import complete.').waitFor();
}

const ID = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const REALM = ID(1);
const realmLine = (name: string) => ({ type: 'authentication-realm', id: REALM, name });
const userLine = (number: number, more: object = {}) => ({
  ...{ type: 'user_authentication_info', realm_id: REALM, id: ID(number) },
  ...{ name: `Person ${number}`, email: `person${number}@example.com`, ...more },
});
const text = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

async function realmNamed(on: Service, name: string): Promise<string> {
  const token = await on.token('realms:read');
  const answer = await on.get('/v2/authentication-realms?page%5Blimit%5D=100', token);
  const { data } = (await answer.json()) as { data: readonly { id: string; name: string }[] };
  const found = data.filter((each) => each.name === name);
  expect(found).toHaveLength(1);
  return found[0]?.id ?? '';
}

async function usersOf(on: Service, realm: string) {
  const token = await on.token('users:read');
  const answer = await on.get(
    `/v2/authentication-realms/${realm}/user-authentication-info?page%5Blimit%5D=100`,
    token,
  );
  return (await answer.json()) as {
    data: readonly { id: string; name: string; email: string }[];
    meta: { results: { total: number } };
  };
}

async function exported(realm: string): Promise<readonly Line[]> {
  const snapshot = await service.db.engine.records.openSnapshot();
  const written: string[] = [];
  await exportRecords({
    ...{ snapshot, within: parseUuid(realm) as Uuid, open: undefined, signal: new AbortController().signal },
    write: async (lines) => {
      written.push(lines);
    },
    onProgress: () => undefined,
  });
  snapshot.close();
  return linesIn(written.join(''));
}

const byId = (lines: readonly Line[]) => [...lines].sort((one, other) => (one.id < other.id ? -1 : 1));

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('an export in the browser equals authrealm export, and its file can be imported', async () => {
    const window = await openSignedIn(service, `${PLACE}?realm=${shop.realm}`, { view });
    const { page } = window;
    await page.getByText('Limits of an import in the browser').click();
    await expectNoErrors(window);
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await page.getByText('Export complete.').waitFor();
    const file = await saved(window, 'Save file');
    // The API does not return `preset` and `email_vouched`.
    const wanted = (await exported(shop.realm)).map(({ preset: _, ...line }) => {
      const { email_vouched: __, ...meta } = (line.meta ?? {}) as Readonly<Record<string, unknown>>;
      return { ...line, meta } as unknown as Line;
    });
    expect(byId(linesIn(file))).toEqual(byId(wanted));
    const types = linesIn(file).map(({ type }) => type);
    const order: readonly string[] = Object.values(DESCRIPTIONS).map(({ type }) => type);
    expect(types).toEqual([...types].sort((one, other) => order.indexOf(one) - order.indexOf(other)));

    await choose(window, file);
    await page.getByText(`${types.length} lines`).waitFor();
    await page.getByText('2 OIDC profiles without').waitFor();
    await page.getByRole('combobox', { name: 'Into' }).selectOption(shop.realm);
    await expectNoErrors(window);
    await run(window);
    // Profiles are reused; existing links, and password links without a password, are rejected.
    await page.getByText('8 created, 4 existing, 12 rejected.').waitFor();
    await window.expectError(/4(00|22)/);
    const refused = await saved(window, 'Save list');
    expect(refused.trim().split('\n')).toHaveLength(12);
    expect(refused).toMatch(/^line \d+: password: is missing$/m);
    expect(refused).not.toContain('example.com');
    await expectNoErrors(window);
    const { data } = await usersOf(service, shop.realm);
    const token = await service.token('users:write');
    const before = new Set(wanted.map(({ id }) => id));
    for (const { id } of data.filter((each) => !before.has(each.id))) {
      const path = `/v2/authentication-realms/${shop.realm}/user-authentication-info/${id}`;
      expect((await service.del(path, token)).status).toBe(204);
    }
  });

  test('an import creates a realm and its records under new IDs, and maps their references', async () => {
    const name = `Linked & <b>bold</b> ${view.viewport.width} ${view.scheme}`;
    const profile = {
      ...{ type: 'oidc-profile', realm_id: REALM, id: ID(2), name: 'Login', client_id: 'shop' },
      ...{
        client_secret: 'of a provider',
        discovery_url: 'https://a.example/.well-known/openid-configuration',
      },
    };
    const link = (number: number, user: number, subject: string) => ({
      ...{ type: 'user_authentication_oidc_profile_info', realm_id: REALM, id: ID(number), subject },
      ...{ user_authentication_info_id: ID(user), issuer: 'https://a.example', oidc_profile_id: ID(2) },
    });
    const users = Object.values(HOSTILE_TEXTS).map((strange, index) =>
      userLine(10 + index, { name: strange }),
    );
    // Children first, CRLF, a byte order mark and an empty line, which `import` accepts.
    const lines = [link(30, 10, 'one'), link(31, 11, 'one'), ...users, profile, realmLine(name)];
    const window = await openSignedIn(service, PLACE, { view });
    await choose(window, `\ufeff${lines.map((line) => JSON.stringify(line)).join('\r\n\r\n')}`);
    await run(window);
    await window.page.getByText('1 rejected.').waitFor();
    await window.expectError(/422/);
    await expectNoErrors(window);
    const realm = await realmNamed(service, name);
    expect(realm).not.toBe(REALM);
    const { data } = await usersOf(service, realm);
    expect(data.map((each) => each.name).sort()).toEqual(Object.values(HOSTILE_TEXTS).sort());
    const token = await service.token('oidc-profile-infos:read');
    const query = new URLSearchParams({ filter: 'eq(issuer,"https://a.example"):eq(subject,one)' });
    const path = `/v2/authentication-realms/${realm}/user-authentication-oidc-profile-info?${query}`;
    const found = (await (await service.get(path, token)).json()) as { data: readonly unknown[] };
    expect(found.data).toHaveLength(1);
  });
});

test('an import lists each invalid line with a reason, and creates the other records', async () => {
  const window = await openSignedIn(service, PLACE);
  const { page } = window;
  const long = JSON.stringify({ ...userLine(50), name: 'x'.repeat(70_000) });
  const broken = [
    ...[
      '',
      'no JSON',
      '{"type":"something"}',
      '[]',
      'null',
      '"text"',
      `{"type":"${HOSTILE_TEXTS.image.replaceAll('"', "'")}"}`,
    ],
    ...[
      JSON.stringify({ ...userLine(51), id: 'x' }),
      JSON.stringify({ ...userLine(52), realm_id: undefined }),
    ],
    ...[
      JSON.stringify({ ...userLine(53), realm_id: ID(999) }),
      long,
      JSON.stringify(userLine(54, { email: 'nobody' })),
    ],
  ];
  await choose(
    window,
    `${JSON.stringify(realmLine('Broken'))}\n${broken.join('\n')}\n${JSON.stringify(userLine(55))}`,
  );
  await run(window);
  await page.getByText('2 created, 11 rejected.').waitFor();
  await window.expectError(/400/);
  const refused = (await saved(window, 'Save list')).trim().split('\n');
  expect(refused.slice(0, 4)).toEqual([
    'line 3: is not JSON',
    expect.stringMatching(/^line 4: type: must be one of authentication-realm, /),
    'line 5: the line: must be a JSON object',
    'line 6: the line: must be a JSON object',
  ]);
  expect(refused).toContain('line 9: id: must be the identifier of a record');
  expect(refused).toContain('line 10: realm_id: is missing');
  expect(refused).toContain('line 11: realm_id: refers to no record created from this file');
  expect(refused).toContain('line 12: exceeds the maximum line length');
  expect(refused.at(-1)).toMatch(/^line 13: email: /);
  await expectNoErrors(window);
});

test.each([
  ['', 'This file is empty.'],
  ['\n\r\n', 'This file is empty.'],
  ['\u0000\u0001 binary', 'No line of this file is a valid export line.'],
])('an import reports a file without valid lines: %j', async (content, words) => {
  const window = await openSignedIn(service, PLACE);
  await choose(window, content);
  await window.page.getByText(words).waitFor();
  expect(await window.page.getByRole('button', { name: 'Import', exact: true }).count()).toBe(0);
  await expectNoErrors(window);
});

test('an import of 100,000 lines stays responsive, and can be cancelled', async () => {
  const window = await openSignedIn(service, PLACE);
  const { page } = window;
  const users = Array.from({ length: 99_999 }, (_, index) => userLine(index + 1_000));
  await choose(window, text([realmLine('Crowd'), ...users]));
  await page.getByText('100,000 lines').waitFor();
  await page.getByText('99,999 users').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByText(/per second, /).waitFor();
  await page.getByRole('link', { name: 'Realms' }).click();
  await page.getByText('Crowd').waitFor();
  await page.getByRole('link', { name: 'Import and export' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Import cancelled').waitFor();
  const { meta } = await usersOf(service, await realmNamed(service, 'Crowd'));
  expect(meta.results.total).toBeLessThan(99_999);
  expect(meta.results.total).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'Import another file' }).click();
  await choose(window, text(users));
  await page.getByText('99,999 lines').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByText('99,999 lines were rejected').waitFor({ timeout: LONG_WAIT_MS });
  expect(await page.getByRole('listitem').count()).toBeLessThan(100);
  await expectNoErrors(window);
}, 300_000);

test('an import pauses when its session loses a scope, and resumes once it has it again', async () => {
  const { clientId, secret } = await service.client(WRITE_SCOPE);
  const token = await service.grant({ clientId, secret });
  const admin = await service.token('admin');
  const grant = async (scopes: string) => {
    const answer = await service.put(`/admin/v1/clients/${clientId}`, admin, {
      data: { scopes: scopes.split(' ') },
    });
    expect(answer.status).toBe(200);
    service.clock.advance(1_000);
  };
  const window = await openSignedIn(service, PLACE, { token });
  const { page } = window;
  await choose(
    window,
    text([realmLine('Halted'), ...Array.from({ length: 60 }, (_, index) => userLine(index + 100))]),
  );
  await grant(READ_SCOPE);
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByText('does not have permission').waitFor();
  await window.expectError(/403/);
  await grant(WRITE_SCOPE);
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByText('61 created, 0 rejected.').waitFor();
  await expectNoErrors(window);
  expect((await usersOf(service, await realmNamed(service, 'Halted'))).meta.results.total).toBe(60);
});

test('an import waits for a busy service, and creates nothing twice', async () => {
  const busy = await startService({ offline: 'true', clientRate: '20/4' });
  const window = await openSignedIn(busy, PLACE);
  await choose(
    window,
    text([realmLine('Rated'), ...Array.from({ length: 40 }, (_, index) => userLine(index + 100))]),
  );
  await run(window);
  await window.page.getByText('41 created, 0 rejected.').waitFor();
  await window.expectError(/429/);
  await expectNoErrors(window);
  expect((await usersOf(busy, await realmNamed(busy, 'Rated'))).meta.results.total).toBe(40);
});

test('an import continues after a restart of the service, and creates nothing twice', async () => {
  const before = await startService({ offline: 'true' });
  const window = await openSignedIn(before, PLACE);
  const { page } = window;
  await choose(
    window,
    text([realmLine('Restarted'), ...Array.from({ length: 400 }, (_, index) => userLine(index + 100))]),
  );
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await before.stop();
  await page.getByText('The service is unreachable.').waitFor();
  await window.expectError(/ERR_/);
  const { port } = new URL(before.url);
  const after = await startService({ ...before.database.flags, offline: 'true', port });
  after.clock.advance(5_000);
  await page.getByText('401 created, 0 rejected.').waitFor();
  // The number of retries depends on how long the restart took.
  if (window.errors.length > 0) await window.expectError(/ERR_|50\d/);
  await expectNoErrors(window);
  expect((await usersOf(after, await realmNamed(after, 'Restarted'))).meta.results.total).toBe(400);
});

test('a session with read scopes exports what it can read, and is offered no import', async () => {
  const window = await openSignedIn(service, `${PLACE}?realm=${shop.realm}`, {
    scope: 'realms:read users:read',
  });
  const { page } = window;
  await page.getByText('This session cannot read: OIDC profiles').waitFor();
  expect(await page.getByRole('region', { name: 'Import' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Export', exact: true }).click();
  await page.getByText('Export complete.').waitFor();
  const types = new Set(linesIn(await saved(window, 'Save file')).map(({ type }) => type));
  expect([...types]).toEqual(['authentication-realm', 'user_authentication_info']);
  await expectNoErrors(window);
});

test('an import names the missing scopes before it creates anything', async () => {
  const window = await openSignedIn(service, PLACE, { scope: `${READ_SCOPE} users:write` });
  await choose(window, text([realmLine('Never'), userLine(100)]));
  await window.page.getByText('lacks the scopes to create these records: realms:write').waitFor();
  expect(await window.page.getByRole('button', { name: 'Import', exact: true }).count()).toBe(0);
  await expectNoErrors(window);
});
