import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { plainText } from '../../console/parts/confusables.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/model/resources.ts';
import { csvRow } from '../../src/ops/transfer/csv_cells.ts';
import { createRecord, kindOf, PASSWORD, type ParentIds } from '../support/resource_cases.ts';
import { startService } from '../support/service.ts';
import { expectNoErrors, HOSTILE_TEXTS, openSignedIn, WRITE_SCOPE } from './console_session.ts';
import { BROWSER_TEST_MS, PHONE, WIDE } from './console_window.ts';
import { waitForPage } from './page_paths.ts';

/** Hostile texts in every member that can store them, on every page that shows them. */

setDefaultTimeout(BROWSER_TEST_MS);

const service = await startService({ offline: 'true' });

/** U+202E is rejected in usernames. */
const DISPLAYABLE_TEXTS = { ...HOSTILE_TEXTS, override: 'jane\u200b' };

/** The length of a long name that a provider may give to a person. */
const LABEL_MAX = 64;

/** Creates one record of each type with this text in every member that accepts it. */
async function createAll(attempt: keyof typeof HOSTILE_TEXTS): Promise<ParentIds> {
  const token = await service.token(WRITE_SCOPE);
  const text = HOSTILE_TEXTS[attempt];
  let home: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const write = async (resource: Parameters<typeof kindOf>[0], data: Readonly<Record<string, unknown>>) =>
    (await createRecord(service, token, { kind: kindOf(resource), home, data })).id;
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
  const names2 = { username: DISPLAYABLE_TEXTS[attempt], password: PASSWORD };
  await write(passwordProfileInfo, { ...names2, password_profile_id: home.passwordProfile });
  return home;
}

/** The beginning of the text, which is visible in any rendering. */
function beginningOf(attempt: keyof typeof HOSTILE_TEXTS): string {
  const [beginning = ''] = HOSTILE_TEXTS[attempt];
  return beginning;
}

const scope = `${WRITE_SCOPE} admin transfer`;
/** Two windows that each test loads again: one of a phone. */
const narrow = await openSignedIn(service, '#/', { view: { ...WIDE, viewport: PHONE }, scope });
const wide = await openSignedIn(service, '#/', { scope });

describe.each(Object.keys(HOSTILE_TEXTS) as (keyof typeof HOSTILE_TEXTS)[])(
  'the stored text %s',
  async (attempt) => {
    const home = await createAll(attempt);

    const places: readonly [string, () => string][] = [
      ['realms', () => '#/realms'],
      ['changes', () => `#/changes?realm=${home.realm}`],
      ['realm', () => `#/realms/${home.realm}`],
      ['users', () => `#/realms/${home.realm}/users`],
      ['user', () => `#/realms/${home.realm}/users/${home.user}`],
      ['provider', () => `#/realms/${home.realm}/oidc-profiles/${home.oidcProfile}`],
      ['password profile', () => `#/realms/${home.realm}/password-profiles/${home.passwordProfile}`],
    ];
    test.each(places)(`stored ${attempt} text is inert on the page of %s`, async (_, place) => {
      await narrow.load(place());
      await narrow.page
        .locator('main bdi.untrusted', { hasText: beginningOf(attempt) })
        .first()
        .waitFor();
      await waitForPage(narrow);
      await expectNoErrors(narrow);
    });

    test(`stored ${attempt} text is inert in the dialogs of a user`, async () => {
      await wide.load(`#/realms/${home.realm}/users/${home.user}`);
      const { page } = wide;
      for (const name of [/^Edit$/, /^Delete$/, /^Add link$/, /^Edit ./, /^Remove ./, /^History of ./]) {
        await page.getByRole('button', { name }).first().click();
        await page.getByRole('dialog').waitFor();
        await page.waitForLoadState('networkidle');
        await expectNoErrors(wide);
        await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
    });

    test(`stored ${attempt} text is inert in search results`, async () => {
      await narrow.load('#/');
      const { page } = narrow;
      for (const clue of new Set([HOSTILE_TEXTS[attempt], DISPLAYABLE_TEXTS[attempt]])) {
        await page.getByRole('searchbox').fill(clue);
        const row = page.locator(`a.row[href="#/realms/${home.realm}/users/${home.user}"]`).first();
        await row
          .locator('bdi.untrusted', { hasText: beginningOf(attempt) })
          .first()
          .waitFor();
        await waitForPage(narrow);
        await expectNoErrors(narrow);
      }
    });

    test(`stored ${attempt} text is inert as the label of a session`, async () => {
      const label = DISPLAYABLE_TEXTS[attempt].slice(0, LABEL_MAX);
      const window = await openSignedIn(service, '#/', { label });
      const box = window.page.getByRole('region', { name: 'Session' });
      await box.locator('bdi.untrusted', { hasText: label.charAt(0) }).waitFor();
      await waitForPage(window);
      await expectNoErrors(window);
    });

    test(`stored ${attempt} text is inert in lists of realms`, async () => {
      await wide.load('#/clients');
      const { page } = wide;
      for (const kind of ['client', 'webhook']) {
        await wide.goto(`#/${kind}s`);
        await page.getByRole('button', { name: `New ${kind}` }).click();
        const realms = page.getByRole('group', { name: 'Realms' });
        await realms.getByLabel('Some').check();
        const choice = realms.locator('label', { hasText: home.realm.slice(-4) });
        await choice.locator('bdi.untrusted', { hasText: beginningOf(attempt) }).waitFor();
        await expectNoErrors(wide);
        await page.keyboard.press('Escape');
      }
      await wide.goto('#/transfer');
      const option = page.locator(`option[value="${home.realm}"]`).first();
      await option.waitFor({ state: 'attached' });
      expect(await option.textContent()).toBe(
        `${plainText(HOSTILE_TEXTS[attempt])} · ${home.realm.slice(-4)}`,
      );
      await expectNoErrors(wide);
    });

    test(`${attempt} text is inert in the name, the header row and the cells of an imported file`, async () => {
      await narrow.load(`#/transfer?realm=${home.realm}`);
      const { page } = narrow;
      const text = HOSTILE_TEXTS[attempt];
      await page.getByLabel('File of JSON lines').setInputFiles({
        name: text,
        mimeType: 'text/csv',
        buffer: Buffer.from(csvRow(['id', 'email', text]) + csvRow(['1', text, text])),
      });
      await page.getByLabel('Name', { exact: true }).selectOption(text.trim());
      await page
        .locator('dl bdi.untrusted', { hasText: beginningOf(attempt) })
        .first()
        .waitFor();
      await page.getByRole('button', { name: 'Import', exact: true }).click();
      await page.getByText('0 imported, 0 unchanged, 0 replaced, 1 rejected.').waitFor();
      await expectNoErrors(narrow);
    });

    test(`stored ${attempt} text is inert in an edit conflict`, async () => {
      await wide.load(`#/realms/${home.realm}/users/${home.user}`);
      const { page } = wide;
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      const [mine, theirs] = ['mine', 'theirs'].map(
        (word) => `${word} ${HOSTILE_TEXTS[attempt].slice(0, 200)}`,
      );
      await page.getByLabel('Given name').fill(mine ?? '');
      const path = `/v2/authentication-realms/${home.realm}/user-authentication-info/${home.user}`;
      const data = { type: 'user_authentication_info', given_name: theirs };
      expect((await service.put(path, await service.token(WRITE_SCOPE), { data })).status).toBe(200);
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      const compared = page.getByRole('dialog').getByRole('region', { name: 'Given name' });
      for (const word of [beginningOf(attempt), 'theirs ', 'mine ']) {
        await compared.locator('bdi.untrusted', { hasText: word }).first().waitFor();
      }
      await wide.expectError(/status of 412/);
      await expectNoErrors(wide);
    });

    test(`${attempt} text is inert in the address`, async () => {
      const text = encodeURIComponent(HOSTILE_TEXTS[attempt]);
      await wide.load(`#/realms/${text}/users/${text}?q=${text}`);
      await wide.page.getByText('Not found, or not visible to this session.').first().waitFor();
      // A search for the end of a user is 400 for what is no ID.
      await wide.expectError(/status of 40[04]/);
      await expectNoErrors(wide);
    });
  },
);
