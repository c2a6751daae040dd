import { z } from 'zod';
import { wholeNumber } from './rule.ts';

/** The settings of account members that can be changed; they are stored with the account realm (docs/wire.md#settings). */
export function accountSettings() {
  return z.object({
    auto_create_account_for_account_members: z.boolean(),
    account_management_authentication_token_timeout_secs: wholeNumber(60, 86_400),
  });
}

export type AccountSettings = Readonly<z.output<ReturnType<typeof accountSettings>>>;

const DEFAULTS: AccountSettings = Object.freeze({
  auto_create_account_for_account_members: true,
  account_management_authentication_token_timeout_secs: 86_400,
});

/** The settings of the account realm, or the defaults of a realm whose settings were never changed. */
export function accountSettingsOf(realm: Readonly<Record<string, unknown>>): AccountSettings {
  return (realm.account_settings as AccountSettings | undefined) ?? DEFAULTS;
}
