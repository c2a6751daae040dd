import { Refusal } from '../../model/fault.ts';
import { type SchemaVersion, schemaVersionOf } from '../migrations.ts';
import { INSUFFICIENT_PRIVILEGE, sqlState } from './errors.ts';
import { assertTableRights, quoteIdentifier, type RoleSchema } from './rights.ts';
import type { SqlClient } from './sql_client.ts';

const IN_SCHEMA = 'c.relnamespace = to_regnamespace(quote_ident(current_schema()))';

/** Counts no tables of extensions. The two marker columns exist only in a schema of this program. */
const SELECT_SCHEMA_STATE = `
  select current_user::text as role, current_schema()::text as schema,
    (select count(*)::integer from pg_class c where ${IN_SCHEMA} and c.relkind in ('r', 'p')
      and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')) as tables,
    (select count(*)::integer from pg_class c join pg_attribute a on a.attrelid = c.oid where ${IN_SCHEMA}
      and (c.relname, a.attname) in (('migration', 'program_version'), ('instance', 'access_version'))) as marker_columns,
    (select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.oid = to_regclass('realm_clock')) as installed_schema`;
const SELECT_MIGRATIONS = 'select version, program_version, serves_from from migration';

interface SchemaState {
  readonly role: string;
  readonly schema: string | null;
  readonly tables: number;
  readonly marker_columns: number;
  readonly installed_schema: string | null;
}

/** The current role and its schema. Throws Refusal where the role has no schema. */
export async function currentRoleSchema(sql: SqlClient): Promise<RoleSchema> {
  const { role, schema } = await readSchemaState(sql);
  return { role, schema };
}

async function readSchemaState(sql: SqlClient): Promise<SchemaState & RoleSchema> {
  const [found] = (await sql.unsafe(SELECT_SCHEMA_STATE)) as [SchemaState];
  const { role, schema } = found;
  if (schema !== null) return { ...found, schema };
  throw new Refusal(
    `role ${role} has no schema for its tables: grant it usage of a schema, and run alter role ${quoteIdentifier(role)} set ` +
      'search_path to that schema',
  );
}

/** The version of the schema; undefined for an empty one. Throws Refusal for a schema of another program. */
export async function postgresSchemaVersion(sql: SqlClient): Promise<SchemaVersion | undefined> {
  const { role, schema, tables, marker_columns, installed_schema: installed } = await readSchemaState(sql);
  if (marker_columns === 2) return appliedVersion(sql, { role, schema });
  if (installed !== null && installed !== schema) {
    throw new Refusal(
      `the tables of authrealm are in schema ${installed}, and role ${role} would create others in ${schema}: run alter role ` +
        `${quoteIdentifier(role)} set search_path to the intended schema`,
    );
  }
  if (tables === 0) return undefined;
  throw new Refusal(
    `schema ${schema} of this database belongs to another program, because it has tables but none of authrealm: pass another ` +
      'database, or give the role its own schema',
  );
}

async function appliedVersion(sql: SqlClient, roleSchema: RoleSchema): Promise<SchemaVersion | undefined> {
  try {
    return schemaVersionOf(await sql.unsafe<readonly SchemaVersion[]>(SELECT_MIGRATIONS));
  } catch (error) {
    if (sqlState(error) === INSUFFICIENT_PRIVILEGE) await assertTableRights(sql, roleSchema);
    throw error;
  }
}

/**
 * Throws Refusal unless the current role uses the schema of `owner`: the default search_path puts a schema with the
 * name of the role first.
 */
export async function assertSameSchema(sql: SqlClient, owner: RoleSchema): Promise<void> {
  const { role, schema } = await readSchemaState(sql);
  if (schema === owner.schema) return;
  throw new Refusal(
    `role ${role} looks for its tables in schema ${schema}, and role ${owner.role} creates them in ${owner.schema}: run alter ` +
      `role ${quoteIdentifier(role)} set search_path to ${quoteIdentifier(owner.schema)}`,
  );
}

/**
 * An expression that identifies a database, the same for every role: an instant as text would depend on the time zone
 * of the role.
 */
const DATABASE_IDENTITY = `(select extract(epoch from pg_postmaster_start_time())::text || ' ' || oid::text
  from pg_database where datname = current_database())`;

const SELECT_IDENTITY = `select ${DATABASE_IDENTITY} as identity, to_regclass('pg_dist_node') is not null as has_nodes`;
const SELECT_CLUSTER_IDENTITY = `select current_database() || string_agg(' ' || nodename || ':' || nodeport, '' order by nodeid)
    as identity from pg_dist_node`;

interface Identity {
  readonly identity: string | null;
}

/** Identifies a database. All nodes of a Citus cluster have the same identity, because each of them lists all. */
async function databaseIdentity(sql: SqlClient): Promise<string | null> {
  const [own] = await sql.unsafe<[Identity & { readonly has_nodes: boolean }]>(SELECT_IDENTITY);
  if (!own.has_nodes) return own.identity;
  const [cluster] = await sql.unsafe<[Identity]>(SELECT_CLUSTER_IDENTITY);
  return cluster.identity ?? own.identity;
}

/** Throws Refusal unless the serving role and the owner connect to the same database. */
export async function assertSameDatabase(serving: SqlClient, owner: SqlClient): Promise<void> {
  const [served, owned] = await Promise.all([serving, owner].map(databaseIdentity));
  if (served === owned) return;
  throw new Refusal(
    '--database and --migrate-database are different databases: pass the same database in both, with two roles',
    { isUsage: true },
  );
}

/** The current role, even without a schema. */
export async function currentRole(sql: SqlClient): Promise<string> {
  const [found] = (await sql.unsafe(SELECT_SCHEMA_STATE)) as [SchemaState];
  return found.role;
}
