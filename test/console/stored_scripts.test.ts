import { afterAll, beforeAll, describe, setDefaultTimeout, test } from 'bun:test';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/domain/resources.ts';
import { type Home, kindOf, make, PASSWORD } from '../family.ts';
import { type Service, startService } from '../kit.ts';
import { settled } from './places.ts';
import { makePatiently } from './shop.ts';
import { expectSound, STRANGE, signedIn, WRITING } from './signed_in.ts';
import { BROWSER_TEST_MS, PHONE, WIDE } from './visit.ts';

/** An attempt at something in every text that can be stored, and every page that shows it. */

setDefaultTimeout(BROWSER_TEST_MS);

let service: Service;

beforeAll(async () => {
  service = await startService({ offline: 'true' });
});
afterAll(() => service.stop());

/** What usernames may not hold is refused when it is written. */
const USERNAMES = { ...STRANGE, override: 'jane\u200b' };

/** Every text of every resource is this one, as far as its rules let it be. */
async function plantAll(attempt: keyof typeof STRANGE): Promise<Home> {
  const token = await service.token(WRITING);
  const text = STRANGE[attempt];
  let home: Home = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const write = async (resource: Parameters<typeof kindOf>[0], data: Readonly<Record<string, unknown>>) =>
    (await makePatiently(() => make(service, token, { kind: kindOf(resource), home, data }))).id;
  const email = `${attempt}<b>@example.com`.replace(/[<>]/g, '');
  home = { ...home, realm: await write(realm, { name: text }) };
  const issuer = `https://${attempt}.example/%3Cscript%3E'onload=x'`;
  home = {
    ...home,
    oidcProfile: await write(oidcProfile, {
      name: text,
      client_id: text,
      discovery_url: `${issuer}/.well-known/openid-configuration`,
    }),
  };
  home = { ...home, passwordProfile: await write(passwordProfile, { name: text }) };
  const names = { name: text, given_name: text, middle_name: text, family_name: text };
  home = { ...home, user: await write(user, { ...names, email }) };
  await write(oidcProfileInfo, { subject: text, issuer, oidc_profile_id: home.oidcProfile });
  const names2 = { username: USERNAMES[attempt], password: PASSWORD };
  await write(passwordProfileInfo, { ...names2, password_profile_id: home.passwordProfile });
  return home;
}

describe.each(Object.keys(STRANGE) as (keyof typeof STRANGE)[])('%s', (attempt) => {
  let home: Home;
  beforeAll(async () => {
    home = await plantAll(attempt);
  });

  const places: readonly [string, () => string][] = [
    ['realms', () => '#/realms'],
    ['changes', () => `#/changes?realm=${home.realm}`],
    ['realm', () => `#/realms/${home.realm}`],
    ['users', () => `#/realms/${home.realm}/users`],
    ['user', () => `#/realms/${home.realm}/users/${home.user}`],
    ['OIDC profile', () => `#/realms/${home.realm}/oidc-profiles/${home.oidcProfile}`],
    ['password profile', () => `#/realms/${home.realm}/password-profiles/${home.passwordProfile}`],
  ];
  test.each(places)('does nothing on the page of %s', async (_, place) => {
    const view = { ...WIDE, viewport: PHONE };
    const window = await signedIn(service, place(), { view, scope: `${WRITING} admin` });
    const [beginning = ''] = STRANGE[attempt];
    await window.page.locator('main bdi.said', { hasText: beginning }).first().waitFor();
    await settled(window);
    await expectSound(window);
    await window.close();
  });

  test('does nothing in the dialogs about the user', async () => {
    const window = await signedIn(service, `#/realms/${home.realm}/users/${home.user}`);
    const { page } = window;
    for (const name of [/^Edit$/, /^Delete$/, /^Add OIDC link$/, /^Edit ./, /^Remove ./, /^History of ./]) {
      await page.getByRole('button', { name }).first().click();
      await page.getByRole('dialog').waitFor();
      await page.waitForLoadState('networkidle');
      await expectSound(window);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await window.close();
  });

  test('does nothing in the address', async () => {
    const text = encodeURIComponent(STRANGE[attempt]);
    const window = await signedIn(service, `#/realms/${text}/users/${text}?clue=${text}`);
    await window.page.getByText('Nothing is there, or nothing that this session may see.').first().waitFor();
    await window.expectTrouble(/status of 404/);
    await expectSound(window);
    await window.close();
  });
});
