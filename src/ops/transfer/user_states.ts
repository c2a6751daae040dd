import { Fault } from '../../model/fault.ts';
import type { Resource } from '../../model/resource.ts';
import { user } from '../../model/resources.ts';
import { parseInstant } from '../../model/text/instant.ts';
import type { JsonObject } from '../../model/text/json_object.ts';

/** Whether a user may sign in, by the value of a member; undefined for an unknown value. */
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

/** The members of Firebase, Auth0, Django, Supabase, Kratos, Cognito and similar systems. That of Keycloak is `enabled`. */
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

/**
 * The line with `enabled`, if members of other systems state it, and the names of these. If one of them or `enabled` itself is false, the
 * user is disabled. Throws Fault `invalid` for an unknown value.
 */
export function withUserState(resource: Resource, line: JsonObject, now: number) {
  const mapped = resource === user ? Object.keys(line).filter((name) => Object.hasOwn(STATES, name)) : [];
  const states = mapped.map((name) => STATES[name]?.(line[name], now));
  const field = mapped[states.indexOf(undefined)];
  const rule = 'has an unknown value: replace the member by enabled, true or false';
  if (field !== undefined) throw new Fault('invalid', [{ field, rule }]);
  // An invalid value of `enabled` stays, and is an error of the line.
  const { enabled = true } = line;
  const isStated = mapped.length > 0 && enabled === true;
  return { line: isStated ? { ...line, enabled: !states.includes(false) } : line, mapped };
}
