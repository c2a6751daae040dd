import { z } from 'zod';
import { wholeNumber } from './rule.ts';

/** The settings of account members that can be changed; they are stored with the account realm (docs/wire.md#settings). */
export function accountSettings() {
  return z.object({
    auto_create_account_for_account_members: z.boolean(),
    account_management_authentication_token_timeout_secs: wholeNumber(60, 86_400),
    enable_self_signup: z.boolean(),
    account_member_self_management: z.enum(['disabled', 'update_only']),
  });
}

export type AccountSettings = Readonly<z.output<ReturnType<typeof accountSettings>>>;

const DEFAULTS: AccountSettings = Object.freeze({
  auto_create_account_for_account_members: true,
  account_management_authentication_token_timeout_secs: 86_400,
  enable_self_signup: false,
  account_member_self_management: 'disabled',
});

/** The settings of the account realm, with the defaults of those that were never changed. */
export function accountSettingsOf(realm: Readonly<Record<string, unknown>>): AccountSettings {
  return { ...DEFAULTS, ...(realm.account_settings as Partial<AccountSettings> | undefined) };
}
