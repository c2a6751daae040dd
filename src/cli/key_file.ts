import { printLine } from '../platform/standard_streams.ts';
import type { OpenDatabase } from '../service/open_database.ts';

/** Prints what the operator must do about a new master key file. */
export function printNewKeyFile({ createdKeyFile }: OpenDatabase): void {
  if (createdKeyFile === undefined) return;
  printLine(
    `created the master key ${createdKeyFile}: back it up separately from the database. Without it, signing keys and the ` +
      'client secrets of OIDC profiles are lost; other records are not',
  );
}
