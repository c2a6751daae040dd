import { describe, expect, test } from 'bun:test';
import { runCommand } from '../support/processes.ts';
import { errorsOf, startService } from '../support/service.ts';
import {
  copiedText,
  expectNoErrors,
  expectNoErrorsInAnyView,
  HOSTILE_TEXTS,
  openSignedIn,
  READ_SCOPE,
  WRITE_SCOPE,
} from './console_session.ts';
import { type ConsoleWindow, VIEWS } from './console_window.ts';
import { openShop } from './open_console.ts';

/** Try it: any operation of the API, from the browser. */

const { service, shop } = await openShop();

const USERS = () => `path.realm_id=${shop.realm}`;

function answerOf({ page }: ConsoleWindow) {
  return page.getByRole('region', { name: 'Response' });
}

const copiedCommand = (window: ConsoleWindow) =>
  copiedText(window, window.page.getByRole('button', { name: 'Copy the command' }));

test.each(['link', 'shortcut'])(
  'Try it opens the list of /docs by its %s, and sends from there',
  async (way) => {
    const window = await openSignedIn(service, '#/');
    const { page } = window;
    await page.getByRole('link', { name: 'Try it' }).waitFor();
    if (way === 'link') await page.getByRole('link', { name: 'Try it' }).click();
    else {
      await page.getByRole('heading', { level: 1 }).focus();
      await page.keyboard.press('g');
      await page.keyboard.press('t');
    }
    await page.getByRole('searchbox', { name: 'Find an operation' }).fill('list realms:read');
    const operations = page.getByRole('navigation', { name: 'Operations' }).getByRole('link');
    expect(await operations.count()).toBe(1);
    await operations.click();
    await page.getByRole('link', { name: 'Try it' }).click();
    await page.getByRole('button', { name: 'Send GET' }).click();
    await answerOf(window).getByText('Buyer Organization').waitFor();
    await expectNoErrors(window);
  },
);

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('Try it sends an operation with parameters, shows the response, and keeps them in its address', async () => {
    const window = await openSignedIn(service, '#/try/list-authentication-realm', { view });
    const { page } = window;
    await page.getByLabel('Send page[limit]').check();
    await page.getByLabel('page[limit]', { exact: true }).fill('1');
    await page.getByRole('button', { name: 'Send GET' }).click();
    const answer = answerOf(window);
    await answer.getByText('200 OK').waitFor();
    await answer.getByText(/^\d+ ms$/).waitFor();
    await answer.getByText('Buyer Organization').waitFor();
    await answer.getByText('x-request-id').waitFor();
    expect(page.url()).toContain('query.page%5Blimit%5D=1');
    await expectNoErrors(window);
    await page.reload();
    expect(await page.getByLabel('page[limit]', { exact: true }).inputValue()).toBe('1');
  });

  test('Try it sends a write with a body, and shows the response', async () => {
    const window = await openSignedIn(service, `#/try/create-user-authentication-info?${USERS()}`, { view });
    const { page } = window;
    const name = `Tried ${view.viewport.width} ${view.scheme}`;
    const data = { type: 'user_authentication_info', name, email: 'tried@example.com' };
    await page.getByLabel('Body').fill(JSON.stringify({ data }, null, 2));
    await page.getByRole('button', { name: 'Send POST' }).click();
    await answerOf(window).getByText('201 Created').waitFor();
    await answerOf(window).getByText(name).waitFor();
    await expectNoErrors(window);
  });

  test('Try it shows markup and invisible characters of a response as text', async () => {
    const id = `path.id=${shop.strange}`;
    const window = await openSignedIn(service, `#/try/get-user-authentication-info?${USERS()}&${id}`, {
      view,
    });
    await window.page.getByRole('button', { name: 'Send GET' }).click();
    await answerOf(window).getByText('U+202E').waitFor();
    await answerOf(window).getByText(HOSTILE_TEXTS.script).waitFor();
    await expectNoErrors(window);
  });
});

test('Try it begins with a realm and a user of this directory, chosen by name', async () => {
  const window = await openSignedIn(service, '#/try/get-user-authentication-info');
  const { page } = window;
  const realm = page.getByLabel('realm_id', { exact: true });
  const user = page.getByLabel('id', { exact: true });
  await user.locator('option').filter({ hasText: 'Jane Doe' }).waitFor({ state: 'attached' });
  expect(await realm.inputValue()).toBe(shop.realm);
  await user.selectOption(shop.strange);
  await page.getByRole('button', { name: 'Send GET' }).click();
  await answerOf(window).getByText('200 OK').waitFor();
  await answerOf(window).getByText('strange@example.com').waitFor();
  await user.selectOption({ label: 'Another ID…' });
  await page.getByLabel('id', { exact: true }).fill(shop.user);
  await page.getByRole('button', { name: 'Send GET' }).click();
  await answerOf(window).getByText('jane.doe@example.com').waitFor();
  await expectNoErrorsInAnyView(window);
});

test('Try it chooses no record for an operation that would delete it', async () => {
  const window = await openSignedIn(service, '#/try/delete-user-authentication-info');
  const { page } = window;
  const user = page.getByLabel('id', { exact: true });
  await user.locator('option').filter({ hasText: 'Jane Doe' }).waitFor({ state: 'attached' });
  const send = page.getByRole('button', { name: 'Send DELETE' });
  expect(await send.isDisabled()).toBe(true);
  await user.selectOption(shop.user);
  expect(await send.isDisabled()).toBe(false);
  await expectNoErrors(window);
});

test('Try it lists the users of the chosen realm', async () => {
  const token = await service.token(WRITE_SCOPE);
  const data = { type: 'authentication-realm', name: 'Without users' };
  expect((await service.post('/v2/authentication-realms', token, { data })).status).toBe(201);
  const window = await openSignedIn(
    service,
    `#/try/get-user-authentication-info?${USERS()}&path.id=${shop.user}`,
  );
  const { page } = window;
  await page.getByLabel('id', { exact: true }).locator('option').first().waitFor({ state: 'attached' });
  expect(await page.getByLabel('id', { exact: true }).inputValue()).toBe(shop.user);
  const realm = page.getByLabel('realm_id', { exact: true });
  const other = realm.locator('option').filter({ hasText: 'Without users' });
  await realm.selectOption((await other.getAttribute('value')) ?? '');
  await page.getByText('There are no users yet.').waitFor();
  await expectNoErrors(window);
});

test('the copied curl command of Try it sends the same request from a shell, with any body', async () => {
  const window = await openSignedIn(service, `#/try/create-user-authentication-info?${USERS()}`);
  const { page } = window;
  const name = `O'Brien "of" $HOME \`id\` $(id) \\ 🙂 ${HOSTILE_TEXTS.script}`;
  const data = { type: 'user_authentication_info', name, email: 'obrien@example.com' };
  await page.getByLabel('Body').fill(JSON.stringify({ data }, null, 2));
  await page.getByLabel('Idempotency-Key', { exact: true }).fill("it's once");
  const command = await copiedCommand(window);
  expect(command).toContain('$TOKEN');
  expect(command).not.toMatch(/eyJ/);
  const TOKEN = await service.token(WRITE_SCOPE);
  const { code, stdout } = await runCommand(['sh', '-c', command], { TOKEN });
  expect(code).toBe(0);
  const made = JSON.parse(stdout) as { data?: { name: string }; errors?: unknown };
  // An Idempotency-Key must not contain spaces.
  expect(made.errors).toBeDefined();
  await page.getByLabel('Idempotency-Key', { exact: true }).fill("it's-once");
  const mended = await runCommand(['sh', '-c', await copiedCommand(window)], { TOKEN });
  expect((JSON.parse(mended.stdout) as { data: { name: string } }).data.name).toBe(name);
  await page.getByRole('button', { name: 'Send POST' }).click();
  await answerOf(window).getByText('201 Created').waitFor();
  await answerOf(window).getByText('$(id)').waitFor();
  await expectNoErrors(window);
});

test('the copied curl command of Try it sends a query as it was typed', async () => {
  const window = await openSignedIn(service, `#/try/list-user-authentication-info?${USERS()}`);
  await window.page.getByLabel('filter', { exact: true }).fill('like(email,jane*):eq(name,"Jane Doe")');
  const TOKEN = await service.token(READ_SCOPE);
  const command = await copiedCommand(window);
  let data: readonly { id: string }[] | undefined;
  // On a busy machine the process that reads such a list may start too late; then the answer is 503.
  while (data === undefined)
    ({ data } = JSON.parse((await runCommand(['sh', '-c', command], { TOKEN })).stdout));
  expect(data.map(({ id }) => id)).toEqual([shop.user]);
});

test('Try it sends a form body, and keeps its secret out of the address', async () => {
  const { clientId, secret } = await service.client('users:read');
  const window = await openSignedIn(service, '#/try/get-access-token');
  const { page } = window;
  await page.getByLabel('client_id', { exact: true }).fill(clientId);
  await page.getByLabel('client_secret', { exact: true }).fill(secret);
  await page.getByLabel('Send scope').uncheck();
  expect(page.url()).not.toContain(secret);
  const command = await copiedCommand(window);
  const { stdout } = await runCommand(['sh', '-c', command]);
  expect(JSON.parse(stdout)).toMatchObject({ token_type: 'Bearer', scope: 'users:read' });
  await page.getByRole('button', { name: 'Send POST' }).click();
  await answerOf(window).getByText('200 OK').waitFor();
  await expectNoErrors(window);
});

test('Try it warns of a body that is not JSON, and sends it unchanged', async () => {
  const window = await openSignedIn(service, `#/try/create-user-authentication-info?${USERS()}`);
  await window.page.getByLabel('Body').fill('{"data": ');
  await window.page.getByText('This is not JSON').waitFor();
  await window.page.getByRole('button', { name: 'Send POST' }).click();
  await answerOf(window).getByText('400 Bad Request').waitFor();
  await window.expectError(/400/);
  await expectNoErrors(window);
});

test('Try it reports a header value that cannot be sent', async () => {
  const window = await openSignedIn(service, `#/try/list-user-authentication-info?${USERS()}`);
  await window.page.getByLabel('X-Request-Id', { exact: true }).fill('🙂');
  await window.page.getByRole('button', { name: 'Send GET' }).click();
  await window.page.getByText('Header values must be printable ASCII').waitFor();
  await expectNoErrors(window);
});

test('Try it offers no Send for an operation whose scope the session lacks', async () => {
  const window = await openSignedIn(service, `#/try/create-user-authentication-info?${USERS()}`, {
    scope: READ_SCOPE,
  });
  await window.page.getByText('This session lacks the scope').waitFor();
  expect(await window.page.getByRole('button', { name: /^Send / }).count()).toBe(0);
  await expectNoErrors(window);
  const TOKEN = await service.token(READ_SCOPE);
  const { stdout } = await runCommand(['sh', '-c', await copiedCommand(window)], { TOKEN });
  expect((JSON.parse(stdout) as { errors: readonly { status: string }[] }).errors[0]?.status).toBe('403');
});

test('Try it has a page for every operation of /openapi.json', async () => {
  const { paths } = (await (await service.get('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  const ids = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map((each) => each.operationId),
  );
  const window = await openSignedIn(service, '#/', { scope: `${WRITE_SCOPE} admin` });
  for (const id of ids) {
    await window.page.evaluate(`location.hash = '#/try/${id}'`);
    await window.page.locator(`a[href="docs#/${id}"]`).waitFor();
    expect(await window.page.getByRole('button', { name: 'Copy the command' }).count()).toBe(1);
  }
  await window.goto('#/try/nothing');
  await window.page.getByText('This release has no such operation').waitFor();
  await expectNoErrors(window);
}, 300_000);

test('Try it opens the next operation when the address changes as soon as a page is drawn', async () => {
  const window = await openSignedIn(service, '#/', { scope: READ_SCOPE });
  // A timer in the frame that draws the page changes the address before the effects of the page have run.
  await window.page.evaluate(`requestAnimationFrame(function look() {
    const isThere = document.querySelector('a[href="docs#/list-authentication-realm"]');
    if (isThere) setTimeout(() => { location.hash = '#/try/list-oidc-profile'; });
    else requestAnimationFrame(look);
  })`);
  await window.page.evaluate(`location.hash = '#/try/list-authentication-realm'`);
  await window.page.locator('a[href="docs#/list-oidc-profile"]').waitFor();
  await expectNoErrors(window);
});

test('Try it reports an ended session and an unreachable service', async () => {
  const other = await startService({ offline: 'true' });
  const token = await other.token(READ_SCOPE);
  const window = await openSignedIn(other, '#/try/list-authentication-realm', { token, scope: READ_SCOPE });
  const send = window.page.getByRole('button', { name: 'Send GET' });
  await other.stop();
  await send.click();
  await window.page.getByText('No response:').waitFor();
  await window.expectError(/ERR_CONNECTION_REFUSED/);
  await expectNoErrors(window);
  await window.close();

  const ended = await openSignedIn(service, '#/try/list-authentication-realm', {
    token: 'nonsense',
    scope: READ_SCOPE,
  });
  await ended.page.getByRole('button', { name: 'Send GET' }).click();
  await answerOf(ended).getByText('401 Unauthorized').waitFor();
  await ended.expectError(/401/);
  await ended.page.getByRole('button', { name: 'Sign in again' }).click();
  await ended.page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
  await expectNoErrors(ended);
  await ended.close();
  expect((await errorsOf(await service.get('/v2/authentication-realms', 'nonsense')))[0]?.status).toBe('401');
});
