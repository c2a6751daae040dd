import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '../model/fault.ts';
import type { Clock } from '../model/id.ts';
import { programFile } from '../model/program_files.ts';
import { migrationTable } from './tables/installation.ts';
import { type SchemaEngine, schemaText } from './tables/schema.ts';
import { TABLES } from './tables/tables.ts';

/**
 * A migration of the schema. With the first line `-- serves: N` it is compatible with programs of schema N and later;
 * without that line only with programs that know it.
 */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** What to do with a schema that is older than the program: migrate it, or refuse to start. */
export type MigrateMode = 'auto' | 'check';

/** The program that opens a database. */
export interface Program {
  readonly version: string;
  readonly clock: Clock;
  /** The error for a missing or empty database, which is not created then. */
  readonly missingDatabase?: Refusal | undefined;
  /** Called after this process has migrated an existing schema. */
  readonly onMigrated?: ((done: SchemaChange) => void) | undefined;
}

/** A migration of an existing schema. */
export interface SchemaChange {
  readonly from: number;
  readonly to: number;
  /** The copy of a SQLite file before the migration. */
  readonly copy?: string;
}

/** A migration in the database's table of migrations, or all of them: the schema version of the database. */
export interface SchemaVersion {
  readonly version: number;
  readonly program_version: string;
  /** The oldest schema whose programs it is compatible with. */
  readonly serves_from: number;
}

/**
 * The migrations of an engine in this release, in order: those of its folder, or until the first release freezes one
 * (docs/releasing.md#make-a-release), one that creates the tables as they are described. Later migrations without the first are an error:
 * they change the tables of the first release.
 */
export function migrationsOf(
  engine: SchemaEngine,
  folder = programFile(`src/sql/${engine}/migrations`),
): readonly Migration[] {
  const written = writtenMigrations(folder);
  const [first] = written;
  if (first && first.version !== 1)
    throw new Refusal(
      `${folder} begins with migration ${first.version} instead of 1: install authrealm again`,
    );
  if (first) return written;
  const tables = TABLES.filter((table) => table !== migrationTable);
  return [{ version: 1, name: 'directory', sql: schemaText(tables, engine) }];
}

function writtenMigrations(folder: string): readonly Migration[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((file) => ({
      version: Number.parseInt(file, 10),
      name: file.replace(/^\d+_|\.sql$/g, ''),
      sql: readFileSync(join(folder, file), 'utf8'),
    }));
}

const SERVES = /^-- serves: (\d+)\n/;

/** N of a migration's line `-- serves: N`, or its own version. */
export function servesFromOf({ version, sql }: Migration): number {
  return Number(SERVES.exec(sql)?.[1] ?? version);
}

/** The schema version of a database with these migrations; undefined without any. */
export function schemaVersionOf(rows: readonly SchemaVersion[]): SchemaVersion | undefined {
  const newest = rows.toSorted((one, other) => other.version - one.version)[0];
  return newest && { ...newest, serves_from: Math.max(...rows.map((row) => row.serves_from)) };
}

/** The present schema, undefined for none, if `mode` permits using it. Throws Refusal otherwise. */
export function assertServableSchema(
  found: SchemaVersion | undefined,
  mode: MigrateMode,
  newest: number,
  { version, missingDatabase }: Pick<Program, 'version' | 'missingDatabase'>,
): number | undefined {
  if (!found) {
    if (missingDatabase) throw missingDatabase;
    return undefined;
  }
  if (found.serves_from > newest) throw tooNew(found, newest, version);
  if (mode === 'check' && found.version < newest) throw tooOld(found.version, newest);
  return found.version;
}

function tooOld(found: number, newest: number): Refusal {
  return new Refusal(
    `the database has schema ${found}, but this program needs ${newest}: start authrealm serve of this release, or pass ` +
      '--migrate auto. UPGRADING.md says whether programs of the older release still work then',
  );
}

function tooNew(found: SchemaVersion, newest: number, version: string): Refusal {
  return new Refusal(
    `the database has schema ${found.version}, created by authrealm ${found.program_version}; this is authrealm ` +
      `${version}, which supports schemas up to ${newest}: install authrealm ${found.program_version} or newer`,
  );
}
