import { existsSync } from 'node:fs';
import { checkpointFileOf, masterKeySource, type Settings } from '../config/parse.ts';
import { Refusal } from '../domain/fault.ts';
import { fileOf, isInMemory } from '../store/open.ts';

/** Throws Refusal if the database does not exist: opening it would create it. */
export function assertDatabaseExists({ database }: Settings, purpose?: 'purge' | 'export'): void {
  const nothing = purpose === undefined ? '' : `: nothing to ${purpose}`;
  if (isInMemory(database)) {
    throw new Refusal(`an in-memory database is empty${nothing}`);
  }
  const file = fileOf(database);
  if (file !== undefined && !existsSync(file)) {
    throw new Refusal(
      `database ${file} does not exist${nothing}. Pass the path of the database with --database, or create one with "authrealm init"`,
    );
  }
}

/**
 * As `assertDatabaseExists`, for commands that create a missing database otherwise. A lost one is left to them: they report what
 * is left of it.
 */
export function assertDatabaseExistsOrLost(settings: Settings): void {
  const key = masterKeySource(settings);
  const hasKey = key.from === 'default' && existsSync(key.path);
  if (!hasKey && existingCheckpointFile(settings) === undefined) assertDatabaseExists(settings);
}

/** The file with the checkpoints and erasures of a database, if it exists. */
export function existingCheckpointFile(settings: Settings): string | undefined {
  const path = checkpointFileOf(settings);
  return path !== undefined && existsSync(path) ? path : undefined;
}
