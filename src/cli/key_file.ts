import type { OpenDatabase } from '../app/open_database.ts';
import { printLine } from '../ops/process/standard_streams.ts';

/** Prints what the operator must do about a new master key file. */
export function printNewKeyFile({ createdKeyFile }: OpenDatabase): void {
  if (createdKeyFile === undefined) return;
  printLine(
    `created the master key ${createdKeyFile}: back it up separately from the database. Without it, signing keys and the ` +
      'client secrets of OIDC profiles are lost; other records are not',
  );
}
