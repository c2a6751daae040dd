import { existsSync } from 'node:fs';
import { checkpointFileOf, type Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { fileOf, isInMemory } from '../store/open.ts';

/** That there is a database to work on: opening one that is not there would make it. Throws Refusal. */
export function proveKept({ database }: Settings, purpose?: 'purge' | 'export'): void {
  const to = purpose === undefined ? '' : ` to ${purpose}`;
  if (isInMemory(database)) {
    throw new Refusal(`a database in memory ${purpose === undefined ? 'keeps' : 'holds'} nothing${to}`);
  }
  const file = fileOf(database);
  if (file !== undefined && !existsSync(file)) throw new Refusal(`there is no database ${file}${to}`);
}

/** The file with the checkpoints and the ledger of a database, where there is one. */
export function keptCheckpoints(settings: Settings): string | undefined {
  const path = checkpointFileOf(settings);
  return path !== undefined && existsSync(path) ? path : undefined;
}
