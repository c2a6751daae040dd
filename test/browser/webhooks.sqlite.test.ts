import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { user } from '../../src/model/resources.ts';
import { createDeadLetters } from '../support/dead_letter_fixtures.ts';
import { createFixture, insertRecord, startService, userMembers } from '../support/service.ts';
import { type ReceivedMessage, startReceiver, verifySignature } from '../support/webhook_receivers.ts';
import { copiedText, expectNoErrors, HOSTILE_TEXTS, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, LONG_WAIT_MS, VIEWS } from './console_window.ts';

setDefaultTimeout(BROWSER_TEST_MS);

/** Management of webhooks in a session with the scope `admin`, with a real receiver. */

const ADMIN = `${READ_SCOPE} admin`;

const service = await startService({ offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' });
const admin = await service.token('admin');
const fixture = await createFixture(service.db);
const receiver = startReceiver();

interface Shown {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly events: '*' | readonly string[];
  readonly events_max: number;
  readonly with_data: boolean;
  readonly is_disabled: boolean;
}

async function targetNamed(name: string): Promise<Shown> {
  const answer = await service.get('/admin/v1/webhooks?page%5Blimit%5D=100', admin);
  const { data } = (await answer.json()) as { data: readonly Shown[] };
  const found = data.filter((each) => each.name === name);
  expect(found).toHaveLength(1);
  return found[0] as Shown;
}

async function make(name: string, more: object = {}): Promise<Shown> {
  const data = { name, url: receiver.url, events: '*', realms: '*', ...more };
  const answer = await service.post('/admin/v1/webhooks', admin, { data });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: Shown }).data;
}

async function change(name: string): Promise<void> {
  const id = service.clock.mintId();
  await insertRecord(service.db, user, [fixture.realm, id], { ...userMembers, name });
}

/** Copies the secret from its dialog and closes the dialog. Checks that nothing on the page holds it. */
async function takeSecret(window: ConsoleWindow): Promise<string> {
  const { page } = window;
  const dialog = page.getByRole('dialog', { name: 'Secret of this webhook' });
  const secret = await copiedText(window, dialog.getByRole('button', { name: 'Copy the secret' }));
  expect(secret).toStartWith('whsec_');
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(secret);
  return secret;
}

const signedBy = (secret: string) => (message: ReceivedMessage) => {
  try {
    verifySignature(secret, message);
    return true;
  } catch {
    return false;
  }
};

const section = ({ page }: ConsoleWindow, name: string) => page.getByRole('region', { name, exact: true });

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('a webhook is created, edited, given a new secret, disabled, enabled and deleted', async () => {
    const window = await openSignedIn(service, '#/webhooks', { scope: ADMIN, view });
    const { page } = window;
    const name = `Search ${view.viewport.width} ${view.scheme}`;
    await page.getByRole('button', { name: 'New webhook' }).click();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Enter the name.').waitFor();
    await page.getByText('Enter the URL.').waitFor();
    await expectNoErrors(window);
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('URL').fill('javascript:globalThis.scriptsRan=true');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.locator('.field-error').filter({ hasText: 'http' }).waitFor();
    await window.expectError(/400|422/);
    await page.getByLabel('URL').fill(receiver.url);
    await page.getByLabel('Selected events').check();
    await page.getByLabel('user created').check();
    await page.getByRole('button', { name: 'Create' }).click();
    const secret = await takeSecret(window);
    await expectNoErrors(window);
    const { id, events } = await targetNamed(name);
    expect(events).toEqual(['user-authentication-info.created']);

    await page.getByRole('link', { name }).click();
    await section(window, 'Deliveries').getByText('No deliveries yet').waitFor();
    await section(window, 'Dead letters').getByText('None: every message').waitFor();
    expect(await page.getByRole('button', { name: 'Redeliver all' }).count()).toBe(0);
    const before = receiver.accepted.length;
    await change(name);
    await receiver.until(() => receiver.accepted.slice(before).some(signedBy(secret)), LONG_WAIT_MS);
    // The delivery is logged shortly after it was sent.
    const delivered = section(window, 'Deliveries').getByText('delivered 204').first();
    while (!(await delivered.isVisible())) {
      await page.getByRole('button', { name: 'Refresh' }).click();
      await Bun.sleep(200);
    }
    await expectNoErrors(window);

    await page.getByRole('button', { name: 'Edit' }).click();
    await page
      .getByLabel('Name', { exact: true })
      .fill(`${HOSTILE_TEXTS.script}${view.scheme}${view.viewport.width}`);
    await page.getByLabel('Maximum events per message').fill('500');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('A whole number from 1 to 100').waitFor();
    await page.getByLabel('Maximum events per message').fill('50');
    await page.getByLabel('Include the record').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: HOSTILE_TEXTS.script, level: 1 }).waitFor();
    expect(await targetNamed(`${HOSTILE_TEXTS.script}${view.scheme}${view.viewport.width}`)).toMatchObject({
      id,
      events_max: 50,
      with_data: true,
      events: ['user-authentication-info.created'],
    });
    await expectNoErrors(window);

    await page.getByRole('button', { name: 'New secret' }).click();
    await page.getByRole('button', { name: 'Create secret' }).click();
    expect(await takeSecret(window)).not.toBe(secret);
    await page.getByText('also signs until').waitFor();

    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByText('disabled: missed changes are delivered later').waitFor();
    await page.getByRole('button', { name: 'Enable' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Enable' }).click();
    await page.getByText('enabled', { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog');
    await expectNoErrors(window);
    await dialog.getByRole('textbox').fill(`delete ${id.slice(-4)}`);
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
    expect((await service.get(`/admin/v1/webhooks/${id}`, admin)).status).toBe(404);
  });

  test('dead letters are redelivered one by one or all together', async () => {
    const { id } = await make(`Gave up ${view.scheme} ${view.viewport.width}`);
    const { realm } = await createFixture(service.db);
    await createDeadLetters(service, id, 3, realm);
    const window = await openSignedIn(service, `#/webhooks/${id}`, { scope: ADMIN, view });
    const { page } = window;
    const letters = section(window, 'Dead letters');
    await letters.getByText('given up').first().waitFor();
    expect(await letters.getByText('given up').count()).toBe(3);
    await section(window, 'Deliveries').getByText('refused 503').first().waitFor();
    await expectNoErrors(window);
    await letters.getByRole('button', { name: 'Redeliver: change 1' }).click();
    await letters.getByRole('link', { name: 'Change 1', exact: true }).waitFor({ state: 'detached' });
    // The list is read again.
    await letters.getByText('given up').first().waitFor();
    expect(await letters.getByText('given up').count()).toBe(2);
    await page.getByRole('button', { name: 'Redeliver all' }).click();
    await letters.getByText('None: every message').waitFor();
    await expectNoErrors(window);
    await section(window, 'Deliveries').getByRole('link', { name: 'Change 1', exact: true }).first().click();
    await page.getByRole('dialog', { name: 'Realm created' }).waitFor();
    await expectNoErrors(window);
  });
});

test('a conflicting edit of a webhook shows both versions before saving', async () => {
  const { id, name } = await make('Edited twice');
  const window = await openSignedIn(service, `#/webhooks/${id}`, { scope: ADMIN });
  const { page } = window;
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Mine');
  expect((await service.put(`/admin/v1/webhooks/${id}`, admin, { data: { events_max: 7 } })).status).toBe(
    200,
  );
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Edit conflict' }).waitFor();
  expect((await targetNamed(name)).events_max).toBe(7);
  expect(await page.getByRole('dialog').innerText()).toContain('7');
  await page.getByRole('button', { name: 'Overwrite with yours' }).click();
  await page.getByRole('heading', { name: 'Mine', level: 1 }).waitFor();
  expect(await targetNamed('Mine')).toMatchObject({ events_max: 7 });
  await window.expectError(/412/);
  await expectNoErrors(window);
});

test('webhook names and URLs that hold scripts or invisible characters are shown as text', async () => {
  const url = `${receiver.url}&q=%22%3E%3Cscript%3E`;
  const names = Object.values(HOSTILE_TEXTS).map((text) => text.slice(0, 255));
  for (const name of names) await make(name, { url });
  const window = await openSignedIn(service, '#/webhooks', { scope: ADMIN });
  await window.page.getByText(HOSTILE_TEXTS.script).first().waitFor();
  await window.page.getByText('U+202E').first().waitFor();
  await expectNoErrors(window);
  await window.page.getByRole('link', { name: HOSTILE_TEXTS.image }).click();
  await window.page.getByRole('heading', { name: HOSTILE_TEXTS.image, level: 1 }).waitFor();
  await expectNoErrors(window);
});

test('a webhook deleted during its edit is reported as not found', async () => {
  const { id } = await make('Vanishes');
  const window = await openSignedIn(service, `#/webhooks/${id}`, { scope: ADMIN });
  const { page } = window;
  await page.getByRole('button', { name: 'Edit' }).click();
  await service.del(`/admin/v1/webhooks/${id}`, admin);
  await page.getByLabel('Name', { exact: true }).fill('Too late');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Not found, or not visible to this session.').waitFor();
  await window.expectError(/404/);
  await expectNoErrors(window);
});

test('the page of a webhook has no controls without the scope admin, and the API answers 403', async () => {
  const { id } = await make('Not for everybody');
  const token = await service.token(READ_SCOPE);
  const window = await openSignedIn(service, `#/webhooks/${id}`, { scope: READ_SCOPE, token });
  const { page } = window;
  await page.getByText('This session does not have permission to do that.').waitFor();
  expect(await page.getByRole('link', { name: 'Webhooks' }).count()).toBe(1);
  for (const name of ['Edit', 'New secret', 'Disable', 'Delete', 'Redeliver all'])
    expect(await page.getByRole('button', { name }).count()).toBe(0);
  for (const act of ['rotate', 'disable', 'enable', 'redeliver'])
    expect((await service.post(`/admin/v1/webhooks/${id}/${act}`, token, { data: {} })).status).toBe(403);
  expect((await service.del(`/admin/v1/webhooks/${id}`, token)).status).toBe(403);
  await window.expectError(/403/);
  await expectNoErrors(window);
});

test('the Webhooks page without webhooks explains them, and rejects a loopback URL', async () => {
  const fresh = await startService({ offline: 'true' });
  const window = await openSignedIn(fresh, '#/webhooks', { scope: ADMIN });
  await window.page.getByText('No webhooks yet').waitFor();
  await window.page.getByRole('button', { name: 'New webhook' }).click();
  await window.page.getByLabel('Name', { exact: true }).fill('Inside');
  await window.page.getByLabel('URL').fill('http://127.0.0.1:1/inside');
  await window.page.getByRole('button', { name: 'Create' }).click();
  await window.page.locator('.field-error').waitFor();
  await window.expectError(/422/);
  await expectNoErrors(window);
});
