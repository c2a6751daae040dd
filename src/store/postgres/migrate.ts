import { SQL } from 'bun';
import { Refusal } from '../../domain/fault.ts';
import { type Applied, judgeApplied, type MigrateMode, type Migration, type Program } from '../migrations.ts';

const LOOK = `select to_regclass('migration') is not null as has_migration, to_regclass('instance') is not null as has_instance`;
const NEWEST = 'select version, program_version from migration order by version desc limit 1';
const MIGRATION_TABLE = `create table if not exists migration (
  version integer not null primary key, name text not null, applied_at bigint not null, program_version text not null)`;

async function newestApplied(sql: Pick<SQL, 'unsafe'>): Promise<Applied | undefined> {
  const [found] = await sql.unsafe(LOOK);
  if (!found.has_migration && found.has_instance) {
    throw new Refusal(
      'the schema has tables of our names, but none of authrealm: name another database or schema',
    );
  }
  if (!found.has_migration) return undefined;
  const [newest] = (await sql.unsafe(NEWEST)) as Applied[];
  return newest;
}

/** Throws Refusal where the schema cannot be served as `mode` says. Changes nothing. */
export async function judgeSchema(
  sql: SQL,
  mode: MigrateMode,
  migrations: readonly Migration[],
  program: Program,
): Promise<number | undefined> {
  return judgeApplied(await newestApplied(sql), mode, migrations.at(-1)?.version ?? 0, program.version);
}

/**
 * Brings the schema to the newest migration. Each is one transaction that begins with its row, which is the lock: of
 * many processes one applies it, the others wait for its row and find it applied.
 */
export async function migrate(sql: SQL, migrations: readonly Migration[], program: Program): Promise<void> {
  for (const migration of migrations) {
    while (!(await isApplied(sql, migration))) {
      try {
        await sql.begin(async (own) => {
          await own.unsafe(MIGRATION_TABLE).simple();
          await own.unsafe('insert into migration values ($1, $2, $3, $4)', [
            migration.version,
            migration.name,
            String(program.ambient.now()),
            program.version,
          ]);
          await own.unsafe(migration.sql).simple();
          await own.unsafe('insert into instance values (1, $1, 1) on conflict do nothing', [
            program.ambient.mintId(),
          ]);
        });
      } catch (error) {
        if (!isTaken(error)) throw error;
      }
    }
  }
}

async function isApplied(sql: SQL, { version }: Migration): Promise<boolean> {
  const newest = await newestApplied(sql);
  return newest !== undefined && newest.version >= version;
}

const UNIQUE_VIOLATION = '23505';
const DUPLICATE_TABLE = '42P07';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK_DETECTED = '40P01';

/** Whether another process was faster, or in the way. */
function isTaken(error: unknown): boolean {
  if (!(error instanceof SQL.PostgresError)) return false;
  return [UNIQUE_VIOLATION, DUPLICATE_TABLE, SERIALIZATION_FAILURE, DEADLOCK_DETECTED].includes(
    error.errno ?? '',
  );
}

/** Lets the role that serves read and write what the owner of the schema made, and no more. */
export async function grantUse(sql: SQL, role: string): Promise<void> {
  const name = `"${role.replaceAll('"', '""')}"`;
  await sql.unsafe(
    `grant select, insert, update, delete on all tables in schema current_schema() to ${name}`,
  );
}
