import type { ConsoleWindow } from './console_window.ts';
import type { Shop } from './shop_fixture.ts';

/** The address of an example of each page. */
export function pagePaths(shop: Shop) {
  const { realm, user, unlinked, strange, oidcProfile, passwordProfile, client, webhook } = shop;
  return {
    find: '#/',
    found: '#/?q=jane',
    notFound: '#/?q=nobody',
    allUsers: '#/users',
    realms: '#/realms',
    realm: `#/realms/${realm}`,
    users: `#/realms/${realm}/users`,
    user: `#/realms/${realm}/users/${user}`,
    unlinked: `#/realms/${realm}/users/${unlinked}`,
    strange: `#/realms/${realm}/users/${strange}`,
    oidcProfile: `#/realms/${realm}/oidc-profiles/${oidcProfile}`,
    passwordProfile: `#/realms/${realm}/password-profiles/${passwordProfile}`,
    clients: '#/clients',
    client: `#/clients/${client}`,
    access: '#/access',
    webhooks: '#/webhooks',
    webhook: `#/webhooks/${webhook}`,
    health: '#/health',
    changes: '#/changes',
    changesOfRealm: `#/changes?realm=${realm}`,
    transfer: `#/transfer?realm=${realm}`,
    tryOne: `#/try/list-user-authentication-info?path.realm_id=${realm}`,
    session: '#/session',
    nowhere: '#/nowhere',
  } as const satisfies Readonly<Record<string, string>>;
}

export type PageName = keyof ReturnType<typeof pagePaths>;

/** Resolves when a page has loaded. A stream never becomes idle, so its status is awaited. */
export async function waitForPage({ page }: ConsoleWindow): Promise<void> {
  if (page.url().includes('#/changes')) await page.getByText('Live', { exact: true }).waitFor();
  else await page.waitForLoadState('networkidle');
}
