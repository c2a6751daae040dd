import type { OpenDatabase } from '../service/open_database.ts';

/** What a new key file means, said once. */
export function tellKeyFile({ keyFileMade }: OpenDatabase): void {
  if (keyFileMade === undefined) return;
  console.log(
    `made the master key ${keyFileMade}: back it up apart from the database. Without it the signing keys and the ` +
      'client secrets of OIDC profiles in every backup are lost; the records are not',
  );
}
