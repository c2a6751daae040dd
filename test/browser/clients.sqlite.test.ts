import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { startService } from '../support/service.ts';
import { copiedText, expectNoErrors, HOSTILE_TEXTS, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, VIEWS, WIDE } from './console_window.ts';

/** Management of clients and signing keys in a session with the scope `admin`. */

setDefaultTimeout(BROWSER_TEST_MS);

const ADMIN = `${READ_SCOPE} admin`;

const service = await startService({ offline: 'true' });
const admin = await service.token('admin');

interface Shown {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly realms: '*' | readonly string[];
  readonly is_disabled: boolean;
  readonly state: string;
}

async function listed(collection: string): Promise<readonly Shown[]> {
  const answer = await service.get(`/admin/v1/${collection}?page%5Blimit%5D=100`, admin);
  return ((await answer.json()) as { data: readonly Shown[] }).data;
}

async function made(name: string): Promise<Shown> {
  const data = { name, scopes: ['users:read'], realms: '*' };
  const answer = await service.post('/admin/v1/clients', admin, { data });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: Shown }).data;
}

async function clientNamed(name: string): Promise<Shown> {
  const found = (await listed('clients')).filter((each) => each.name === name);
  expect(found).toHaveLength(1);
  return found[0] as Shown;
}

/** Changes of a client take effect within a second. */
async function tokenWorks(clientId: string, secret: string): Promise<boolean> {
  service.clock.advance(1_000);
  return (await service.requestGrant({ clientId, secret })).status === 200;
}

/** Copies the secret from its dialog and closes the dialog. Checks that nothing on the page holds it. */
async function takeSecret(window: ConsoleWindow): Promise<string> {
  const { page } = window;
  const dialog = page.getByRole('dialog', { name: 'Secret of this client' });
  const secret = await copiedText(window, dialog.getByRole('button', { name: 'Copy the secret' }));
  // The live region of the dialog: those below it are inert.
  await dialog.getByRole('status').filter({ hasText: 'Copied the secret.' }).waitFor();
  expect(await page.getByText('Copied the secret.').count()).toBe(1);
  expect(await dialog.getByText(secret, { exact: true }).count()).toBe(1);
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(secret);
  const storage = await page.evaluate(
    'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, location.href])',
  );
  expect(storage).not.toContain(secret);
  return secret;
}

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('a client is created, edited, given a new secret, disabled, enabled and deleted', async () => {
    const window = await openSignedIn(service, '#/clients', { scope: ADMIN, view });
    const { page } = window;
    const name = `The ${view.viewport.width} ${view.scheme} shop`;
    await page.getByRole('button', { name: 'New client' }).click();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Enter the name.').waitFor();
    await page.getByText('Select at least one scope.').waitFor();
    await expectNoErrors(window);
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('users:read').check();
    await page.getByRole('button', { name: 'Create' }).click();
    const secret = await takeSecret(window);
    const { id } = await clientNamed(name);
    expect(await tokenWorks(id, secret)).toBe(true);
    await expectNoErrors(window);

    await page.getByRole('link', { name }).click();
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Name', { exact: true }).fill(HOSTILE_TEXTS.script + view.scheme);
    await page.getByLabel('changes:read').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: HOSTILE_TEXTS.script, level: 1 }).waitFor();
    expect(await clientNamed(HOSTILE_TEXTS.script + view.scheme)).toMatchObject({
      id,
      scopes: ['users:read', 'changes:read'],
      realms: '*',
    });

    await page.getByRole('button', { name: 'New secret' }).click();
    await page
      .getByLabel('Keep accepting the current secret for')
      .selectOption({ label: '0 hours: it stops working immediately' });
    await page.getByRole('button', { name: 'Create secret' }).click();
    const other = await takeSecret(window);
    expect([await tokenWorks(id, secret), await tokenWorks(id, other)]).toEqual([false, true]);

    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByText('disabled: it and its tokens are rejected').waitFor();
    expect(await tokenWorks(id, other)).toBe(false);
    await page.getByRole('button', { name: 'Enable' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Enable' }).click();
    await page.getByText('accepted', { exact: true }).waitFor();
    await expectNoErrors(window);

    await page.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByRole('button', { name: 'Delete' }).isDisabled()).toBe(true);
    await expectNoErrors(window);
    await dialog.getByRole('textbox').fill(`delete ${id.slice(-4)}`);
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Clients and keys' }).waitFor();
    expect((await listed('clients')).map((each) => each.id)).not.toContain(id);
  });

  test('a client is created with access to selected realms only', async () => {
    const name = `Limited ${view.viewport.width} ${view.scheme}`;
    const only = `Only ${view.viewport.width} ${view.scheme}`;
    const token = await service.token('realms:write');
    const answer = await service.post('/v2/authentication-realms', token, {
      data: { type: 'authentication-realm', name: only },
    });
    const realm = ((await answer.json()) as { data: { id: string } }).data.id;
    const window = await openSignedIn(service, '#/clients', { scope: ADMIN, view });
    const { page } = window;
    await page.getByRole('button', { name: 'New client' }).click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('users:read').check();
    await page.getByLabel('Some').check();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Select at least one realm, or choose all.').waitFor();
    await expectNoErrors(window);
    await page.getByLabel(only).check();
    await page.getByLabel('admin').check();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('cannot be limited to some realms').waitFor();
    await window.expectError(/422/);
    await page.getByLabel('admin').uncheck();
    await page.getByRole('button', { name: 'Create' }).click();
    await takeSecret(window);
    expect(await clientNamed(name)).toMatchObject({ scopes: ['users:read'], realms: [realm] });
    await page.getByRole('link', { name }).click();
    await page.getByRole('link', { name: only }).waitFor();
    await expectNoErrors(window);
  });

  test('signing keys are listed, created and withdrawn', async () => {
    const before = await listed('signing-keys');
    const window = await openSignedIn(service, '#/clients', { scope: ADMIN, view });
    const { page } = window;
    await page.getByText('Signs all new tokens').waitFor();
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByText('Published; signs next').first().waitFor();
    const after = await listed('signing-keys');
    const fresh = after.filter(({ id }) => before.every((each) => each.id !== id));
    expect(fresh.map(({ state }) => state)).toEqual(['next']);
    const digits = fresh[0]?.id.slice(-4) ?? '';
    // The key that signs may end with the same digits.
    const row = page.getByRole('listitem').filter({ hasText: 'Published; signs next' });
    await row.getByRole('button', { name: `Withdraw key ${digits}` }).click();
    const dialog = page.getByRole('dialog');
    const confirm = dialog.getByRole('button', { name: 'Withdraw' });
    expect(await confirm.isDisabled()).toBe(true);
    await expectNoErrors(window);
    await dialog.getByRole('textbox').fill(`withdraw ${digits}`);
    await confirm.click();
    await dialog.waitFor({ state: 'detached' });
    const now = await listed('signing-keys');
    expect(now.find(({ id }) => id === fresh[0]?.id)?.state).toBe('withdrawn');
    await expectNoErrors(window);
  });
});

test('client names that hold scripts or invisible characters are shown as text', async () => {
  const ids = [];
  for (const name of Object.values(HOSTILE_TEXTS)) ids.push((await made(name)).id);
  const window = await openSignedIn(service, '#/clients', { scope: ADMIN });
  await window.page.getByText(HOSTILE_TEXTS.script, { exact: true }).waitFor();
  await window.page.getByText('U+202E').waitFor();
  await expectNoErrors(window);
  for (const id of ids) {
    await window.goto(`#/clients/${id}`);
    await window.page.getByText(id).first().waitFor();
    await expectNoErrors(window);
  }
});

test('a conflicting edit of a client shows both versions, and can overwrite the other one', async () => {
  const { id } = await made('Contested');
  const window = await openSignedIn(service, `#/clients/${id}`, { scope: ADMIN });
  const { page } = window;
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Mine');
  await service.put(`/admin/v1/clients/${id}`, admin, { data: { name: 'Theirs' } });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Edit conflict' }).waitFor();
  await window.expectError(/412/);
  const shown = page.getByRole('region', { name: 'Name' });
  for (const word of ['Contested', 'Theirs', 'Mine']) await shown.getByText(word, { exact: true }).waitFor();
  await expectNoErrors(window);
  await page.getByRole('button', { name: 'Overwrite with yours' }).click();
  await page.getByRole('heading', { name: 'Mine', level: 1 }).waitFor();
  expect(await clientNamed('Mine')).toMatchObject({ id });
});

test('a client deleted during an edit conflict is reported as not found', async () => {
  const { id } = await made('Going');
  const path = `/admin/v1/clients/${id}`;
  const window = await openSignedIn(service, `#/clients/${id}`, { scope: ADMIN });
  const { page } = window;
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Mine');
  await service.put(path, admin, { data: { name: 'Going on' } });
  await page.getByRole('button', { name: 'Save' }).click();
  const dialog = page.getByRole('dialog', { name: 'Edit conflict' });
  await dialog.waitFor();
  await window.expectError(/412/);
  await service.put(path, admin, { data: { name: 'Going further' } });
  await page.route(`**${path}`, async (route) => {
    if (route.request().method() === 'GET') await service.del(path, admin);
    await route.continue();
  });
  await page.getByRole('button', { name: 'Overwrite with yours' }).click();
  await dialog.getByText('Not found, or not visible to this session.').waitFor();
  await window.expectError(/412/);
  await window.expectError(/404/);
  await expectNoErrors(window);
});

test('the page of an unknown client reports it as not found', async () => {
  const window = await openSignedIn(service, '#/clients/nobody', { scope: ADMIN });
  await window.page.getByText('Not found, or not visible to this session.').waitFor();
  await window.expectError(/404/);
  await expectNoErrors(window);
});

test('Clients and keys has no menu entry and no controls without the scope admin', async () => {
  const window = await openSignedIn(service, '#/clients', { scope: READ_SCOPE, view: WIDE });
  await window.page.getByText('does not have permission').first().waitFor();
  await window.expectError(/403/);
  expect(await window.page.getByRole('link', { name: 'Clients and keys' }).count()).toBe(0);
  expect(await window.page.getByRole('button', { name: /New client|New key|Withdraw/ }).count()).toBe(0);
  await expectNoErrors(window);
  await window.close();
  const reader = await service.token(READ_SCOPE);
  const { id } = await made('Untouched');
  const path = `/admin/v1/clients/${id}`;
  const answers = await Promise.all([
    service.post('/admin/v1/clients', reader, { data: { name: 'x', scopes: ['users:read'], realms: '*' } }),
    service.put(path, reader, { data: { name: 'x' } }),
    service.del(path, reader),
    ...['rotate', 'disable', 'enable'].map((act) => service.post(`${path}/${act}`, reader, { data: {} })),
    service.post('/admin/v1/signing-keys', reader, {}),
    service.post('/admin/v1/signing-keys/x/withdraw', reader, {}),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 403));
});

test('a client that signs end users in and up must state whether it reports their addresses', async () => {
  const window = await openSignedIn(service, '#/clients', { scope: ADMIN });
  const { page } = window;
  await page.getByRole('button', { name: 'New client' }).click();
  await page.getByLabel('Name', { exact: true }).fill('The login page');
  expect(await page.getByText('Addresses of end users').count()).toBe(0);
  await page.getByLabel('Sign in end users').check();
  await page.getByLabel('sign-up').check();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('Select whether the client reports them.').waitFor();
  await expectNoErrors(window);
  await page.getByLabel('Addresses of end users').selectOption('header');
  await page.getByRole('button', { name: 'Create' }).click();
  await takeSecret(window);
  expect(await clientNamed('The login page')).toMatchObject({
    ...{ scopes: ['sign-in', 'sign-up'], end_user_address: 'header' },
  } as object);
  await page.getByRole('link', { name: 'The login page' }).click();
  await page.getByText('Reported with each request').waitFor();
  await page.getByText('Create users who sign up').waitFor();
  await expectNoErrors(window);
});
