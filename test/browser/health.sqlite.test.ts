import { expect, setDefaultTimeout, test } from 'bun:test';
import { createFixture, oidcPath, startService } from '../support/service.ts';
import { addTarget, startReceiver } from '../support/webhook_receivers.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, VIEWS } from './console_window.ts';

setDefaultTimeout(BROWSER_TEST_MS);

/** The Health page. */

const ADMIN = `${READ_SCOPE} admin`;
const FLAGS = { offline: 'true', metrics: '127.0.0.1:0', allowPrivate: 'localhost 127.0.0.0/8' } as const;

const service = await startService(FLAGS);
const fixture = await createFixture(service.db);
const reader = await service.token('profile-infos:read changes:read');

/** The value of a row of the table. */
const value = ({ page }: ConsoleWindow, name: string) =>
  page
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name, exact: true }) })
    .getByRole('cell');

test.each(VIEWS)(
  'the Health page lists the current values, and newer ones on request, $viewport.width wide, $scheme',
  async (view) => {
    const receiver = startReceiver();
    receiver.respond(() => new Response(null, { status: 500 }));
    const { webhook } = await addTarget(service, receiver.url);
    await createFixture(service.db, { realm: fixture.realm });
    // This client may not list realms.
    expect((await service.get('/v2/authentication-realms', reader)).status).toBe(403);
    const window = await openSignedIn(service, '#/health', { scope: ADMIN, view });
    const { page } = window;
    await page.getByText('SQLite').waitFor();
    // More than none.
    for (const name of ['Requests', 'Client errors (4xx)', 'Commits', 'CPU time']) {
      await value(window, `${name} since the start`).filter({ hasText: /[1-9]/ }).waitFor();
    }
    await value(window, 'Server errors (5xx) since the start').filter({ hasText: /^0$/ }).waitFor();
    const refresh = page.getByRole('button', { name: 'Refresh' });
    // The first delivery may be later than the first values.
    const lag = value(window, 'Webhook lag').filter({ hasText: /\d s/ });
    while (!(await lag.isVisible())) await refresh.click();
    await expectNoErrors(window);
    const requests = () => value(window, 'Requests since the start').innerText();
    const before = await requests();
    await service.get(oidcPath(fixture), reader);
    await refresh.click();
    while ((await requests()) === before) await Bun.sleep(20);
    await window.close();
    const admin = await service.token('admin');
    await service.del(`/admin/v1/webhooks/${webhook.webhookId}`, admin);
  },
);

test('the Health page says so when the service records no request metrics', async () => {
  const quiet = await startService({ offline: 'true' });
  const window = await openSignedIn(quiet, '#/health', { scope: ADMIN });
  await window.page.getByText('This service does not record request metrics.').waitFor();
  await value(window, 'Webhook lag').filter({ hasText: 'none' }).waitFor();
  await expectNoErrors(window);
});

test('the Health page without the scope admin says so', async () => {
  const window = await openSignedIn(service, '#/health', { scope: READ_SCOPE });
  await window.page.getByText('This session does not have permission to do that.').waitFor();
  await window.expectError(/403/);
  await expectNoErrors(window);
});
