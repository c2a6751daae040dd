import type { Page } from 'playwright-core';

/** Follows the pages of an oidc-provider from `first` like a browser and signs in, until it redirects to a URL that `isBack` accepts. */
export async function signInAtProvider(
  first: string,
  login: string,
  isBack: (url: string) => boolean,
): Promise<URL> {
  const cookies = new Map<string, string>();
  let next: { url: string; body?: URLSearchParams } = { url: first };
  for (let step = 0; step < 12; step += 1) {
    if (isBack(next.url)) return new URL(next.url);
    const answer = await fetch(next.url, {
      redirect: 'manual',
      headers: { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(next.body ? { method: 'POST', body: next.body } : {}),
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const text = await answer.text();
    const location = answer.headers.get('location');
    if (location) {
      next = { url: new URL(location, next.url).href };
      continue;
    }
    const [, action = ''] = /action="([^"]+)"/.exec(text) ?? [];
    const [, prompt = ''] = /name="prompt" value="([^"]+)"/.exec(text) ?? [];
    if (prompt === '') throw new Error(`${answer.status} ${text.slice(0, 400)}`);
    next = {
      url: new URL(action, next.url).href,
      body: new URLSearchParams({ prompt, login, password: 'any' }),
    };
  }
  throw new Error('the provider did not redirect back');
}

/** Signs in at the pages of an oidc-provider in a browser, and consents. */
export async function signInOnPages(page: Page, login: string): Promise<void> {
  await page.locator('[name=login]').fill(login);
  await page.locator('[name=password]').fill('any');
  await page.locator('button[type=submit]').click();
  await page.getByRole('button', { name: 'Continue' }).click();
}
