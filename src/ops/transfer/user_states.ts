import { parseInstant } from '../../model/text/instant.ts';
import type { JsonObject } from '../../model/text/json_object.ts';

/** Whether a user may sign in, by the value of a member; undefined for a value that does not say it. */
type ReadState = (value: unknown, now: number) => boolean | undefined;

const flag: ReadState = (value) => (typeof value === 'boolean' ? value : undefined);
const negatedFlag: ReadState = (value) => (typeof value === 'boolean' ? !value : undefined);

function words(enabled: readonly string[], disabled: readonly string[]): ReadState {
  return (value) => {
    const word = typeof value === 'string' ? value.toLowerCase() : '';
    return enabled.includes(word) || (disabled.includes(word) ? false : undefined);
  };
}

const activity = words(['active', 'enabled'], ['inactive', 'disabled', 'blocked', 'suspended']);

/** The members by which Firebase, Auth0, Django, Supabase, Kratos, Cognito and similar systems state it. Keycloak has our own. */
const STATES: Readonly<Record<string, ReadState>> = {
  Enabled: flag,
  active: flag,
  is_active: flag,
  isActive: flag,
  disabled: negatedFlag,
  blocked: negatedFlag,
  banned_until(value, now) {
    const until = typeof value === 'string' ? parseInstant(value) : undefined;
    return value === null || (until === undefined ? undefined : until <= now);
  },
  state: activity,
  status: activity,
  // Cognito signs in no user whose status is one of the latter.
  UserStatus: words(
    ['confirmed', 'external_provider', 'reset_required', 'force_change_password'],
    ['unconfirmed', 'archived', 'compromised'],
  ),
};

/** Whether a user may sign in, as a line states it. */
interface UserState {
  /** False if one of the members says so; undefined without any. */
  readonly enabled: boolean | undefined;
  /** The members that state it. */
  readonly members: readonly string[];
  /** The first of them whose value does not say it. */
  readonly unreadable: string | undefined;
}

/** Reads whether a user may sign in from the members of other systems in a line. */
export function readUserState(line: JsonObject, now: number): UserState {
  const members = Object.keys(line).filter((name) => Object.hasOwn(STATES, name));
  const states = members.map((name) => STATES[name]?.(line[name], now));
  const enabled = members.length === 0 ? undefined : !states.includes(false);
  return { enabled, members, unreadable: members[states.indexOf(undefined)] };
}
