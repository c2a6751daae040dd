import type { OpenDatabase } from '../service/open_database.ts';

/** Prints what the operator must do about a new master key file. */
export function printNewKeyFile({ keyFileMade }: OpenDatabase): void {
  if (keyFileMade === undefined) return;
  console.log(
    `created the master key ${keyFileMade}: back it up separately from the database. Without it, signing keys and the ` +
      'client secrets of OIDC profiles are lost; other records are not',
  );
}
