import { RESOURCES } from '../api/records.ts';
import type { IconName } from './icon.tsx';

/** What a resource is called before readers. */
export interface Noun {
  readonly one: string;
  readonly many: string;
  readonly icon: IconName;
}

const NOUNS = new Map<string, Noun>([
  [RESOURCES.realms.name, { one: 'realm', many: 'realms', icon: 'realms' }],
  [RESOURCES.oidcProfiles.name, { one: 'OIDC profile', many: 'OIDC profiles', icon: 'profile' }],
  [RESOURCES.passwordProfiles.name, { one: 'password profile', many: 'password profiles', icon: 'profile' }],
  [RESOURCES.users.name, { one: 'user', many: 'users', icon: 'user' }],
  [RESOURCES.oidcProfileInfos.name, { one: 'OIDC link', many: 'OIDC links', icon: 'link' }],
  [RESOURCES.passwordProfileInfos.name, { one: 'password link', many: 'password links', icon: 'link' }],
]);

/** By the name of its description. */
export function nounOf(name: string): Noun {
  return NOUNS.get(name) ?? { one: name, many: name, icon: 'profile' };
}
