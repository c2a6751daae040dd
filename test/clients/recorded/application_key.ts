import { parseScopes } from '../../../src/model/principal.ts';
import type { Service } from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import { createPassword, createSignInClient, enableSelfSignup } from '../../support/sign_in.ts';

const SERVER_SCOPE =
  'settings:read profiles:read users:read users:write password-profile-infos:read password-profile-infos:write sign-in sign-up';

/**
 * Creates the one key of the storefronts, and a shopper. `secret` is for a server; the ID alone gives what a browser needs. `member` is
 * another shopper. Self-signup is on.
 */
export async function createApplicationKey(service: Service) {
  const { accounts, member } = await createSettingsRealms(service.db);
  await enableSelfSignup(service, await service.token('settings:write'));
  const shopper = await createPassword(service.db, accounts, { username: 'Jane@shop.example' });
  const key = await createSignInClient(service, {
    scope: SERVER_SCOPE,
    implicitScopes: parseScopes('settings:read profiles:read sign-in sign-up'),
    implicitRealms: new Set([accounts]),
    ratePerAddress: { requests: 1_000, seconds: 60 },
  });
  // Storefronts send usernames in lower case.
  const { profile, password } = shopper;
  return { ...key, origin: service.url, member, profile, password, username: 'jane@shop.example' };
}
