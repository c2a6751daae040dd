import { readdirSync, readFileSync } from 'node:fs';
import { Refusal } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';

/**
 * A step of the schema. Where its first line is `-- serves: N`, it only expands: programs of schema N and later go on with
 * what it leaves. Without that line only those that know it do.
 */
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
  readonly clock: Clock;
}

/** A migration as it is written down in the database. */
export interface MigrationRow {
  readonly version: number;
  readonly program_version: string;
  /** As the migration says it; null where it says nothing. Files of 0.1.0 have no such column. */
  readonly serves_from?: number | null;
}

/** How far a database is. */
export interface SchemaVersion {
  readonly version: number;
  readonly program_version: string;
  /** The oldest schema whose programs can serve it. */
  readonly serves_from: number;
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

const SERVES = /^-- serves: (\d+)\n/;

/** What a migration says about older programs. */
export function servesFromOf({ sql }: Migration): number | null {
  const number = SERVES.exec(sql)?.[1];
  return number === undefined ? null : Number(number);
}

/** How far a database is that has these migrations, undefined for one without any. */
export function schemaVersionOf(rows: readonly MigrationRow[]): SchemaVersion | undefined {
  const newest = rows.toSorted((one, other) => other.version - one.version)[0];
  return newest && { ...newest, serves_from: Math.max(...rows.map((row) => row.serves_from ?? row.version)) };
}

/** The schema that is there, undefined for none, where `mode` allows to go on from it. Throws Refusal otherwise. */
export function assertServableSchema(
  found: SchemaVersion | undefined,
  mode: MigrateMode,
  newest: number,
  programVersion: string,
): number | undefined {
  if (!found) {
    if (mode === 'off') throw noSchema();
    return undefined;
  }
  if (found.serves_from > newest) throw tooNew(found, newest, programVersion);
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
      '--migrate auto. UPGRADING.md says whether programs of the older release go on then',
  );
}

function tooNew(found: SchemaVersion, newest: number, version: string): Refusal {
  return new Refusal(
    `the database has schema ${found.version}, made by authrealm ${found.program_version}; this is authrealm ` +
      `${version}, which knows schemas up to ${newest}: install authrealm ${found.program_version} or newer`,
  );
}
