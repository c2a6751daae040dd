import { RESOURCES } from '../api/records.ts';
import type { IconName } from './icon.tsx';

/** Display names of resources. */
interface ResourceLabel {
  readonly one: string;
  readonly many: string;
  readonly icon: IconName;
}

const RESOURCE_LABELS = new Map<string, ResourceLabel>([
  [RESOURCES.realms.name, { one: 'realm', many: 'realms', icon: 'realms' }],
  [RESOURCES.oidcProfiles.name, { one: 'OIDC profile', many: 'OIDC profiles', icon: 'profile' }],
  [RESOURCES.passwordProfiles.name, { one: 'password profile', many: 'password profiles', icon: 'profile' }],
  [RESOURCES.users.name, { one: 'user', many: 'users', icon: 'user' }],
  [RESOURCES.oidcProfileInfos.name, { one: 'OIDC link', many: 'OIDC links', icon: 'link' }],
  [RESOURCES.passwordProfileInfos.name, { one: 'password link', many: 'password links', icon: 'link' }],
]);

/** By the name of its description. */
export function resourceLabel(name: string): ResourceLabel {
  return RESOURCE_LABELS.get(name) ?? { one: name, many: name, icon: 'profile' };
}

/** Writing a link also updates `updated_at` of its user. */
const MEMBER_LABELS = new Map([
  ['updated_at', 'Changed'] as const,
  ...Object.values(RESOURCES).flatMap(({ fields }) =>
    fields.map(({ name, label }) => [name, label] as const),
  ),
]);

/** The display name of a member. */
export function memberLabel(member: string): string {
  return MEMBER_LABELS.get(member) ?? member;
}
