import { readdirSync, readFileSync } from 'node:fs';
import { Refusal } from '../domain/fault.ts';
import type { Ambient } from '../domain/id.ts';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/**
 * What to do about a schema that is older than the program: bring it up, refuse to start, or trust the operator. Where
 * there is no schema yet, `off` alone refuses.
 */
export type MigrateMode = 'auto' | 'check' | 'off';

/** The program that opens a database. */
export interface Program {
  readonly version: string;
  readonly ambient: Ambient;
}

/** The newest migration that a database has. */
export interface Applied {
  readonly version: number;
  readonly program_version: string;
}

/** The numbered files of a folder, in order. */
export function migrationsIn(folder: URL): readonly Migration[] {
  return readdirSync(folder)
    .sort()
    .map((file) => ({
      version: Number.parseInt(file, 10),
      name: file.replace(/^\d+_|\.sql$/g, ''),
      sql: readFileSync(new URL(file, folder), 'utf8'),
    }));
}

/** The schema that is there, undefined for none, where `mode` allows to go on from it. Throws Refusal otherwise. */
export function judgeApplied(
  found: Applied | undefined,
  mode: MigrateMode,
  newest: number,
  programVersion: string,
): number | undefined {
  if (!found) {
    if (mode === 'off') throw noSchema();
    return undefined;
  }
  if (found.version > newest) throw tooNew(found, newest, programVersion);
  if (mode === 'check' && found.version < newest) throw tooOld(found.version, newest);
  return found.version;
}

/** Why a database that is not there is not made. */
export function noSchema(): Refusal {
  return new Refusal(
    'there is no database yet, and --migrate off makes none: start once with --migrate auto',
  );
}

function tooOld(found: number, newest: number): Refusal {
  return new Refusal(
    `the database has schema ${found}, this program needs ${newest}: start authrealm serve of this release, or give ` +
      '--migrate auto. Programs of the older release will then refuse it',
  );
}

function tooNew(found: Applied, newest: number, version: string): Refusal {
  return new Refusal(
    `the database has schema ${found.version}, made by authrealm ${found.program_version}; this is authrealm ` +
      `${version}, which knows schemas up to ${newest}: install authrealm ${found.program_version} or newer`,
  );
}
