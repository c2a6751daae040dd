import { Refusal } from '../../domain/fault.ts';
import { type MigrationRow, type SchemaVersion, schemaVersionOf } from '../migrations.ts';
import { INSUFFICIENT_PRIVILEGE, sqlState } from './errors.ts';
import { quoteIdentifier, type RoleSchema } from './rights.ts';
import type { SqlClient } from './sql_client.ts';

const IN_SCHEMA = 'c.relnamespace = to_regnamespace(quote_ident(current_schema()))';

/** What extensions have brought belongs to nobody. */
const SELECT_SCHEMA_STATE = `
  select current_user::text as role, current_schema()::text as schema,
    (select count(*)::integer from pg_class c where ${IN_SCHEMA} and c.relkind in ('r', 'p')
      and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')) as tables,
    (select count(*)::integer from pg_class c join pg_attribute a on a.attrelid = c.oid where ${IN_SCHEMA}
      and (c.relname, a.attname) in (('migration', 'program_version'), ('instance', 'access_version'))) as marks,
    (select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.oid = to_regclass('realm_clock')) as schema_of_ours`;
const APPLIED = 'select version, program_version, serves_from from migration';

interface SchemaState {
  readonly role: string;
  readonly schema: string | null;
  readonly tables: number;
  readonly marks: number;
  readonly schema_of_ours: string | null;
}

/** Where the tables of who asks are. Throws Refusal where there is no place for them. */
export async function currentRoleSchema(sql: SqlClient): Promise<RoleSchema> {
  const { role, schema } = await readSchemaState(sql);
  return { role, schema };
}

async function readSchemaState(sql: SqlClient): Promise<SchemaState & RoleSchema> {
  const [found] = (await sql.unsafe(SELECT_SCHEMA_STATE)) as [SchemaState];
  const { role, schema } = found;
  if (schema !== null) return { ...found, schema };
  throw new Refusal(
    `role ${role} sees no schema to have its tables in: grant it usage of one, and alter role ${quoteIdentifier(role)} set ` +
      'search_path to that one',
  );
}

/** The newest migration there is. Throws Refusal for a schema of another program. */
export async function postgresSchemaVersion(sql: SqlClient): Promise<SchemaVersion | undefined> {
  const { role, schema, tables, marks, schema_of_ours: ours } = await readSchemaState(sql);
  if (marks === 2) return readApplied(sql, role, schema);
  if (ours !== null && ours !== schema) {
    throw new Refusal(
      `the tables of authrealm are in schema ${ours}, and role ${role} would make others in ${schema}: alter role ` +
        `${quoteIdentifier(role)} set search_path to the one that is meant`,
    );
  }
  if (tables === 0) return undefined;
  throw new Refusal(
    `schema ${schema} of this database belongs to another program: it has tables, but none of authrealm. Name another ` +
      'database, or give the role a schema of its own',
  );
}

async function readApplied(sql: SqlClient, role: string, schema: string): Promise<SchemaVersion | undefined> {
  try {
    return schemaVersionOf(await sql.unsafe<readonly MigrationRow[]>(APPLIED));
  } catch (error) {
    if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new Refusal(
      `role ${role} may not read the tables in schema ${schema}: start once with --migrate-database naming their owner, ` +
        `which grants it, or as their owner: grant select, insert, update, delete on all tables in schema ` +
        `${quoteIdentifier(schema)} to ${quoteIdentifier(role)}`,
      { cause: error },
    );
  }
}

/**
 * Proves that a role finds the tables of `made`: a schema with the name of a role is its own before any other. Throws
 * Refusal otherwise.
 */
export async function assertSameSchema(sql: SqlClient, made: RoleSchema): Promise<void> {
  const { role, schema } = await readSchemaState(sql);
  if (schema === made.schema) return;
  throw new Refusal(
    `role ${role} looks for its tables in schema ${schema}, and role ${made.role} makes them in ${made.schema}: alter ` +
      `role ${quoteIdentifier(role)} set search_path to ${quoteIdentifier(made.schema)}`,
  );
}

/** An expression that tells a database from every other one, whoever asks: instants as text are in a role's time zone. */
export const DATABASE_IDENTITY = `(select extract(epoch from pg_postmaster_start_time())::text || ' ' || oid::text
  from pg_database where datname = current_database())`;

/** Proves that the owner of a schema brings up the database that is served. Throws Refusal otherwise. */
export async function assertSameDatabase(serving: SqlClient, owner: SqlClient): Promise<void> {
  const [[served], [owned]] = (await Promise.all(
    [serving, owner].map((sql) => sql.unsafe(`select ${DATABASE_IDENTITY} as told`)),
  )) as [[{ told: string }], [{ told: string }]];
  if (served.told === owned.told) return;
  throw new Refusal(
    '--database and --migrate-database name two databases: name one of them in both, as two roles',
    { isUsage: true },
  );
}

/** The role that asks, whatever it may see. */
export async function currentRole(sql: SqlClient): Promise<string> {
  const [found] = (await sql.unsafe(SELECT_SCHEMA_STATE)) as [SchemaState];
  return found.role;
}
