import { expect } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { openSignInBudgets } from '../../src/sign_in/budgets.ts';
import { signIn } from '../support/console_sign_in.ts';
import type { Service } from '../support/service.ts';
import { type Person, REALMS } from './crowd_fixture.ts';

/** What happens to a person of the crowd before somebody at the console helps. */

/** Another session changes the subject of a link. */
export async function changeSubject(service: Service, { realm, id, link }: Person, subject: string) {
  const user = `/v2/authentication-realms/${realm}/user-authentication-info/${id}`;
  const data = { type: 'user_authentication_oidc_profile_info', subject };
  const { access_token } = await signIn(service, { scope: 'support', label: 'colleague' });
  const path = `${user}/user-authentication-oidc-profile-info/${link}`;
  expect((await service.put(path, access_token, { data })).status).toBe(200);
}

/** Sign-ins with the username are throttled. */
export async function throttle(service: Service, { realm, username: usernameKey = '' }: Person) {
  const budgets = openSignInBudgets(service.db.engine.budgets, service.db.logKeys, service.clock);
  const profileId = REALMS.find((each) => each.realm === realm)?.passwords as Uuid;
  const name = { realmId: realm as Uuid, profileId, usernameKey };
  const attempt = { clientId: 'shop', address: undefined, device: undefined };
  for (let count = 0; count < 100; count += 1) await budgets.countWrong({ ...name, ...attempt });
}
