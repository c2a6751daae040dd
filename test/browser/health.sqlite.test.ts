import { expect, setDefaultTimeout, test } from 'bun:test';
import { createDeadLetters } from '../support/dead_letter_fixtures.ts';
import { startService } from '../support/service.ts';
import { addTarget, startReceiver } from '../support/webhook_receivers.ts';
import { expectNoErrors, openSignedIn, READ_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, type ConsoleWindow, VIEWS } from './console_window.ts';

setDefaultTimeout(BROWSER_TEST_MS);

/** The Health page. */

const ADMIN = `${READ_SCOPE} admin`;
const FLAGS = { offline: 'true', metrics: '127.0.0.1:0', allowPrivate: 'localhost 127.0.0.0/8' } as const;

const service = await startService(FLAGS);
const reader = await service.token('profile-infos:read changes:read');

/** The row of a check. */
const check = ({ page }: ConsoleWindow, name: string) =>
  page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) });

test.each(VIEWS)(
  'the Health page says which checks fail and what to do, $viewport.width wide, $scheme',
  async (view) => {
    // This client may not list realms.
    expect((await service.get('/v2/authentication-realms', reader)).status).toBe(403);
    const window = await openSignedIn(service, '#/health', { scope: ADMIN, view });
    const { page } = window;
    await page.getByText('SQLite').waitFor();
    const deadLetters = check(window, 'Webhook dead letters');
    expect(await deadLetters.getByText('fails').count()).toBe(0);
    const cells = await check(window, 'Server errors').getByRole('cell').allTextContents();
    expect(cells).toEqual(['0 %', '1 %', 'docs/guides/troubleshooting.md#database-errors']);
    await page.getByText('counted from the start of the service').waitFor();
    await expectNoErrors(window);
    const receiver = startReceiver();
    const { webhook } = await addTarget(service, receiver.url);
    await createDeadLetters(service, webhook.webhookId, 2);
    // The service counts dead letters once a second.
    while (!(await deadLetters.getByText('fails').isVisible()))
      await page.getByRole('button', { name: 'Refresh' }).click();
    // A busy machine may fail other checks as well.
    await page.getByRole('heading', { name: /^\d of 16 checks fail$/ }).waitFor();
    await deadLetters.getByText('"authrealm webhook deliveries --dead" lists them.').waitFor();
    expect((await deadLetters.getByRole('cell').allTextContents()).slice(0, 2)).toEqual(['2', '0']);
    const names = await page.getByRole('rowheader').allTextContents();
    const isFailing = names.map((name) => name.includes('fails'));
    expect(isFailing).toEqual(isFailing.toSorted().toReversed());
    expect(await page.getByText('counted from the start of the service').count()).toBe(0);
    await expectNoErrors(window);
    await window.close();
    const admin = await service.token('admin');
    await service.del(`/admin/v1/webhooks/${webhook.webhookId}`, admin);
  },
);

test('the Health page says so when the service records no request metrics', async () => {
  const quiet = await startService({ offline: 'true' });
  const window = await openSignedIn(quiet, '#/health', { scope: ADMIN });
  await window.page.getByText('This service does not record request metrics.').waitFor();
  await check(window, 'Server errors').getByText('not measured').waitFor();
  await expectNoErrors(window);
});

test('the Health page without the scope admin says so', async () => {
  const window = await openSignedIn(service, '#/health', { scope: READ_SCOPE });
  await window.page.getByText('This session does not have permission to do that.').waitFor();
  await window.expectError(/403/);
  await expectNoErrors(window);
});
