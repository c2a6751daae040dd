/** The tables whose rows are not honoured if they were changed without the service, and what to do about one. */
const ADVICE: Readonly<Record<string, string>> = {
  client: 'delete it and create it again',
  client_realm: 'set the realms of the client again',
  signing_key: 'withdraw it',
  webhook: 'delete it and create it again',
  console_link: 'delete the row',
  console_session: 'end it with "authrealm console sessions end"',
  password_profile_info: 'set its password again',
};

/** What a checker says about a row of this table whose MAC is not valid. */
export function describeForgedRow(table: string): string {
  return `was changed in the database without the service, and is not honoured: ${ADVICE[table]}`;
}
