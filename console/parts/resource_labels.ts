import { RESOURCES } from '../api/records.ts';
import type { IconName } from './icon.tsx';

/** What people read in place of the names on the wire: of resources, members, values, scopes and events. */

/** Icons of resources. */
const ICONS = new Map<string, IconName>([
  [RESOURCES.realms.name, 'realms'],
  [RESOURCES.users.name, 'user'],
  [RESOURCES.oidcProfileInfos.name, 'link'],
  [RESOURCES.passwordProfileInfos.name, 'link'],
]);

/** The display name and icon of a resource, by the name of its description. */
export function resourceLabel(name: string) {
  const resource = Object.values(RESOURCES).find((each) => each.name === name);
  const [one, many] = resource?.words ?? ([inWords(name), inWords(name)] as const);
  return { one, many, icon: ICONS.get(name) ?? 'profile' };
}

/** Members of records, clients, webhook targets and log entries whose name in words would be no good label. */
const MEMBER_LABELS = new Map([
  // Writing a link also updates `updated_at` of its user.
  ['updated_at', 'Changed'],
  ['created_at', 'Created'],
  ['duplicate_email_policy', 'Duplicate e-mail addresses'],
  ['enable_one_time_password_token', 'One-time password tokens'],
  ['creation_status', 'Account'],
  ['origin', 'Created for'],
  ['id', 'ID'],
  ['realm_id', 'Realm'],
  ['user_id', 'User'],
  ['password_hash', 'Password'],
  ['is_disabled', 'Disabled'],
  ['implicit_scopes', 'Scopes of the ID alone'],
  ['implicit_realms', 'Realms of the ID alone'],
  ['rate_per_address', 'Requests per address'],
  ['storefronts', 'Networks of the storefront'],
  ['end_user_address', 'Addresses of end users'],
  ['with_data', 'Include the record'],
  ['events_max', 'Events per message'],
]);

/** The display name of a member: `discovery_url` is `Discovery URL`, `oidc_profile_id` is `Provider`. */
export function memberLabel(member: string): string {
  const resource = member.replace(/(profile)_id$/, '$1').replaceAll('_', '-');
  return MEMBER_LABELS.get(member) ?? capitalized(resourceLabel(resource).one);
}

/** Whether a member identifies a person to programs, unlike a name. */
export function isIdentifier(member: string): boolean {
  return ['email', 'username', 'subject'].includes(member);
}

/** Values of the members that have a fixed set of them. */
const VALUE_LABELS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  duplicate_email_policy: { allowed: 'allowed', api_only: 'over the API only' },
  username_format: { any: 'any text', email: 'e-mail addresses' },
  // For which settings the service created a realm.
  origin: {
    account_authentication_settings: 'the account settings',
    'customer-authentication-settings': 'the customer settings',
  },
  creation_status: { COMPLETE: 'complete', IN_PROGRESS: 'being created' },
};

/** The display name of a value of a member; other texts are as they are. */
export function valueLabel(member: string, value: string): string {
  return VALUE_LABELS[member]?.[value] ?? value;
}

/** Scopes that are not those of records. */
const SCOPE_LABELS = new Map([
  ['admin', 'administer everything'],
  ['sign-in', 'sign in end users'],
  ['sign-up', 'create users who sign up'],
  ['sign-in-throttles:write', 'forgive wrong passwords'],
  ['transfer', 'import and export files'],
]);

/** What a scope permits: `users:read` is `read users`. */
export function scopeLabel(scope: string): string {
  const [noun = '', verb] = scope.split(':');
  // Providers and password profiles have one scope.
  const resources = Object.values(RESOURCES).filter((each) => each.scope === noun);
  return SCOPE_LABELS.get(scope) ?? `${verb} ${resources.map(({ words }) => words[1]).join(' and ') || noun}`;
}

/** `user-authentication-info.updated` is `user updated`. */
export function eventLabel(event: string): string {
  const dot = event.lastIndexOf('.');
  return `${resourceLabel(event.slice(0, dot)).one} ${event.slice(dot + 1)}`;
}

/** `Discovery URL` within a sentence is `discovery URL`; abbreviations keep their capitals. */
export function inSentence(label: string): string {
  return /^[A-Z][a-z-]/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const CAPITALS = new Map([
  ['email', 'e-mail'],
  ['id', 'ID'],
  ['uris', 'URIs'],
  ['url', 'URL'],
]);

function inWords(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => CAPITALS.get(word) ?? word)
    .join(' ');
}
