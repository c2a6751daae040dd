import { describe, expect, test } from 'bun:test';
import { createLink } from '../support/console_sign_in.ts';
import { startFaultyProxy } from '../support/faulty_proxy.ts';
import { expectNoErrors, openMenu, READ_SCOPE, signInByLink } from './console_session.ts';
import { type ConsoleWindow, openWindow, VIEWS } from './console_window.ts';
import { openShop } from './open_console.ts';

/** Sign-in by a link. */

const { service } = await openShop();

const storage = ({ page }: ConsoleWindow) =>
  page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])') as Promise<string>;
const address = ({ page }: ConsoleWindow) => page.evaluate('location.href') as Promise<string>;

/** Resolves when the service has answered the revocation of a token. */
const given = ({ page }: ConsoleWindow) =>
  page.waitForResponse((answer) => answer.request().method() === 'DELETE');

async function expectSignIn({ page }: ConsoleWindow, words: RegExp): Promise<void> {
  await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
  await page.getByRole('status').filter({ hasText: words }).first().waitFor();
}

const tokenOf = async (window: ConsoleWindow): Promise<string> =>
  JSON.parse(JSON.parse(await storage(window))[0]['authrealm.session']).grant.access_token;

describe.each(VIEWS)('$viewport.width wide, $scheme', (view) => {
  test('a sign-in link opens a session that survives a reload, and its code leaves the address', async () => {
    const window = await openWindow(service.url, view);
    const { code } = await createLink(service, { scope: READ_SCOPE, label: 'anna' });
    const urls: string[] = [];
    window.page.on('request', (request) => urls.push(request.url()));
    await window.goto(`#code=${code}`);
    await openMenu(window);
    await window.page.getByText('anna').waitFor();
    expect(await address(window)).toBe(`${service.url}/console#/`);
    expect(urls.filter((url) => url.includes(code))).toEqual([]);
    expect(await storage(window)).not.toContain(code);
    await window.page.reload();
    await openMenu(window);
    await window.page.getByText('anna').waitFor();
    expect(await window.page.evaluate('history.length')).toBe(2);
    await expectNoErrors(window);
  });

  test('signing out revokes the access token', async () => {
    const window = await openWindow(service.url, view);
    await signInByLink(window, service, READ_SCOPE);
    const token = await tokenOf(window);
    expect((await service.get('/v2/authentication-realms', token)).status).toBe(200);
    await openMenu(window);
    await expectNoErrors(window);
    const session = given(window);
    await window.page.getByRole('button', { name: 'Sign out' }).click();
    await expectSignIn(window, /You have signed out/);
    expect(await storage(window)).not.toContain(token);
    await session;
    service.clock.advance(1_000);
    expect((await service.get('/v2/authentication-realms', token)).status).toBe(401);
    await expectNoErrors(window);
  });
});

describe('a sign-in link', () => {
  const used = async (): Promise<string> => {
    const link = await createLink(service);
    const first = await openWindow(service.url);
    await first.goto(`#code=${link.code}`);
    await first.page.getByText('anna').waitFor();
    await first.close();
    return link.code;
  };
  const late = async (): Promise<string> => {
    const link = await createLink(service);
    service.clock.advance(61_000);
    return link.code;
  };

  const tries: readonly [string, () => Promise<string>][] = [
    ['already used', used],
    ['expired', late],
    ['guessed', async () => 'A'.repeat(22)],
    ['malformed', async () => '<script>'],
  ];
  test.each(tries)('a sign-in link that is %s is rejected with a message', async (_, codeOf) => {
    const window = await openWindow(service.url);
    await window.goto(`#code=${encodeURIComponent(await codeOf())}`);
    await expectSignIn(window, /already been used or is more than a minute old/);
    expect(await address(window)).toBe(`${service.url}/console#/`);
    await window.expectError(/status of 400/);
    await expectNoErrors(window);
  });

  test('a sign-in link opened in an existing tab signs in there', async () => {
    const window = await openWindow(service.url);
    await window.goto('');
    const { code } = await createLink(service, { label: 'later' });
    await window.page.evaluate(`location.hash = '#code=${code}'`);
    await window.page.getByText('later').waitFor();
    expect(await address(window)).not.toContain(code);
    await expectNoErrors(window);
  });
});

describe('a sign-in link that the service did not check', () => {
  test('a sign-in link opened without a network can be retried', async () => {
    const window = await openWindow(service.url);
    const { page } = window;
    await window.goto('');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    const { code } = await createLink(service, { label: 'off and on' });
    await page.context().setOffline(true);
    await page.evaluate(`location.hash = '#code=${code}'`);
    await expectSignIn(window, /The service is unreachable/);
    expect(await address(window)).toBe(`${service.url}/console#/`);
    expect(await storage(window)).not.toContain(code);
    await page.getByRole('button', { name: 'Retry sign-in' }).click();
    await expectSignIn(window, /The service is unreachable/);
    await page.context().setOffline(false);
    expect(await window.violations()).toEqual([]);
    await page.getByRole('button', { name: 'Retry sign-in' }).click();
    await page.getByText('off and on').waitFor();
    await window.expectError(/ERR_INTERNET_DISCONNECTED/);
    await expectNoErrors(window);
  });

  test.each([429, 503])(
    'a sign-in link answered with %i can be retried until it is rejected',
    async (status) => {
      const proxy = await startFaultyProxy(service.url);
      const window = await openWindow(proxy.url);
      const { page } = window;
      proxy.injectFaults(/^POST \/console\/token$/, { status }, { status: 400 });
      await window.goto(`#code=${'A'.repeat(22)}`);
      await expectSignIn(window, /The service is busy/);
      await page.getByRole('button', { name: 'Retry sign-in' }).click();
      await expectSignIn(window, /already been used or is more than a minute old/);
      expect(await page.getByRole('button', { name: 'Retry sign-in' }).count()).toBe(0);
      expect(proxy.requests.filter(({ path }) => path === '/console/token')).toHaveLength(2);
      await window.expectError(/status of/);
      await expectNoErrors(window);
    },
  );
});

describe('a sign-in over an open session', () => {
  test.each([
    ['an invalid sign-in code', `#code=${'A'.repeat(22)}`, /more than a minute old.*The session of/],
    ['an unsolicited response of a provider', '?error=access_denied', /was not requested by this tab/],
  ])('%s is reported, and leaves the open session unchanged', async (_, brought, words) => {
    const window = await openWindow(service.url);
    const { page } = window;
    await signInByLink(window, service, READ_SCOPE);
    const token = await tokenOf(window);
    await window.goto(brought);
    await page.getByRole('status').filter({ hasText: words }).waitFor();
    await page.getByText('Anna at the desk', { exact: true }).waitFor();
    expect(await tokenOf(window)).toBe(token);
    service.clock.advance(1_000);
    expect((await service.get('/v2/authentication-realms', token)).status).toBe(200);
    if (brought.startsWith('#')) await window.expectError(/status of 400/);
    await expectNoErrors(window);
  });

  test('an unchecked sign-in code over an open session can be retried or dismissed', async () => {
    const window = await openWindow(service.url);
    const { page } = window;
    const again = page.getByRole('button', { name: 'Retry sign-in' });
    const words = page.getByText(/is unreachable.*The session of Anna at the desk continues/);
    const bring = (code: string) => page.evaluate(`location.hash = '#code=${code}'`);
    await page.clock.install();
    await signInByLink(window, service, READ_SCOPE);
    const before = await tokenOf(window);
    const left = await createLink(service, { label: 'left' });
    await page.context().setOffline(true);
    await bring(left.code);
    await words.waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await again.waitFor({ state: 'detached' });
    const { code } = await createLink(service, { scope: READ_SCOPE, label: 'somebody else' });
    await bring(code);
    await words.waitFor();
    await page.clock.fastForward(20_000);
    const failed = page.waitForEvent('requestfailed');
    await again.click();
    await failed;
    await words.waitFor();
    expect(await address(window)).not.toContain(code);
    expect(await storage(window)).not.toContain(code);
    expect(await tokenOf(window)).toBe(before);
    await page.context().setOffline(false);
    expect(await window.violations()).toEqual([]);
    await again.click();
    await page.getByRole('status').filter({ hasText: 'You are now signed in as somebody else.' }).waitFor();
    await page.getByText('somebody else', { exact: true }).waitFor();
    expect(await again.count()).toBe(0);
    await window.expectError(/ERR_INTERNET_DISCONNECTED/);
    await expectNoErrors(window);
  });

  /** A window with a session, and the retry button of a code that could not be sent. */
  async function openWithFailedExchange(code: string) {
    const window = await openWindow(service.url);
    const { page } = window;
    await signInByLink(window, service, READ_SCOPE);
    await page.context().setOffline(true);
    await page.evaluate(`location.hash = '#code=${code}'`);
    const again = page.getByRole('button', { name: 'Retry sign-in' });
    await again.waitFor();
    await page.context().setOffline(false);
    await window.expectError(/ERR_INTERNET_DISCONNECTED/);
    return { window, page, again };
  }

  test('a sign-in code rejected on a retry over an open session is not offered again', async () => {
    const { window, page, again } = await openWithFailedExchange('A'.repeat(22));
    await again.click();
    const words = /more than a minute old.*The session of Anna at the desk continues/;
    await page.getByRole('status').filter({ hasText: words }).waitFor();
    expect(await again.count()).toBe(0);
    await window.expectError(/status of 400/);
    await expectNoErrors(window);
  });

  test('an unchecked sign-in code can still be retried after the open session has ended', async () => {
    const { code } = await createLink(service, { scope: READ_SCOPE, label: 'later' });
    const { window, page, again } = await openWithFailedExchange(code);
    await service.del('/console/token', await tokenOf(window), { Origin: service.url });
    service.clock.advance(1_000);
    await page.getByRole('link', { name: 'Realms' }).click();
    await expectSignIn(window, /Your session has ended/);
    await window.expectError(/status of 401/);
    await again.click();
    await page.getByText('later', { exact: true }).waitFor();
    expect(await again.count()).toBe(0);
    await expectNoErrors(window);
  });

  test('a valid sign-in code over an open session revokes its token, and shows the new user', async () => {
    const window = await openWindow(service.url);
    const { page } = window;
    await signInByLink(window, service, READ_SCOPE);
    const before = await tokenOf(window);
    const { code } = await createLink(service, { scope: READ_SCOPE, label: 'somebody else' });
    const session = given(window);
    await page.evaluate(`location.hash = '#code=${code}'`);
    await page.getByRole('status').filter({ hasText: 'You are now signed in as somebody else.' }).waitFor();
    await page.getByText('somebody else', { exact: true }).waitFor();
    expect(await page.getByText('Anna at the desk').count()).toBe(0);
    await session;
    service.clock.advance(1_000);
    expect((await service.get('/v2/authentication-realms', before)).status).toBe(401);
    expect((await service.get('/v2/authentication-realms', await tokenOf(window))).status).toBe(200);
    await expectNoErrors(window);
  });
});

test('a valid sign-in code opens its session even if revoking the old one gets no response', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await signInByLink(window, service, READ_SCOPE);
  const requested = Promise.withResolvers<void>();
  await page.route('**/console/token', async (route) => {
    if (route.request().method() === 'DELETE') requested.resolve();
    else await route.continue();
  });
  const { code } = await createLink(service, { scope: READ_SCOPE, label: 'somebody else' });
  await page.evaluate(`location.hash = '#code=${code}'`);
  await requested.promise;
  await page.reload();
  await page.getByText('somebody else', { exact: true }).waitFor();
  expect(await page.getByText('Anna at the desk').count()).toBe(0);
  await expectNoErrors(window);
});

test('signing out takes effect at once even if the revocation gets no response', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await signInByLink(window, service, READ_SCOPE);
  await page.route('**/console/token', async (route) => {
    if (route.request().method() !== 'DELETE') await route.continue();
  });
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expectSignIn(window, /You have signed out/);
  const { code } = await createLink(service, { scope: READ_SCOPE, label: 'somebody else' });
  await page.evaluate(`location.hash = '#code=${code}'`);
  await page.getByText('somebody else', { exact: true }).waitFor();
  await expectNoErrors(window);
});

test('an unchecked sign-in code can still be retried after an invalid one', async () => {
  const window = await openWindow(service.url);
  const { page } = window;
  await page.route('**/console/token', (route) => route.abort(), { times: 1 });
  const { code } = await createLink(service, { scope: READ_SCOPE, label: 'kept' });
  await window.goto(`#code=${code}`);
  await expectSignIn(window, /The service is unreachable/);
  await page.evaluate(`location.hash = '#code=${'A'.repeat(22)}'`);
  await expectSignIn(window, /more than a minute old.*The earlier sign-in can still be retried/);
  await page.getByRole('button', { name: 'Retry sign-in' }).click();
  await page.getByText('kept', { exact: true }).waitFor();
  await window.expectError(/ERR_FAILED|status of 400/);
  await expectNoErrors(window);
});
