import { expect, setDefaultTimeout, test } from 'bun:test';
import { redirectOf, startOidcSignIn } from '../support/oidc_sign_in.ts';
import { createPassword } from '../support/sign_in.ts';
import { copiedText, expectNoErrorsInAnyView, openSignedIn } from './console_session.ts';
import { BROWSER_TEST_MS } from './console_window.ts';

/** The page of a profile through which users of the account realm sign in. */

setDefaultTimeout(BROWSER_TEST_MS);

const { service, realm, profile, login } = await startOidcSignIn();

test('the page of a provider has a button that copies the redirect URI which a login sends', async () => {
  const uri = redirectOf(await login()).query.redirect_uri ?? '';
  const window = await openSignedIn(service, `#/realms/${realm}/oidc-profiles/${profile}`);
  const { page } = window;
  await page.getByText(uri, { exact: true }).waitFor();
  expect(await page.locator('main dt').first().innerText()).toBe('Redirect URI');
  expect(await copiedText(window, page.getByRole('button', { name: 'Copy the redirect URI' }))).toBe(uri);
  await page.getByText('Copied the redirect URI.').waitFor();
  await expectNoErrorsInAnyView(window);
});

test('the page of a password profile has no redirect URI', async () => {
  const { profile: passwords } = await createPassword(service.db, realm);
  const { page } = await openSignedIn(service, `#/realms/${realm}/password-profiles/${passwords}`);
  await page.getByText('Username format').waitFor();
  expect(await page.getByText('Redirect URI').count()).toBe(0);
});
