import { Refusal } from '../../model/fault.ts';
import type { SqlClient } from './sql_client.ts';

/** The current role and the schema that holds its tables. */
export interface RoleSchema {
  readonly role: string;
  readonly schema: string;
}

/** The privileges that a serving role needs on every table. */
const TABLE_RIGHTS: readonly string[] = ['select', 'insert', 'update', 'delete'];
const ALL_RIGHTS = TABLE_RIGHTS.join(', ');

const RIGHTS = `unnest(array[${TABLE_RIGHTS.map((right) => `'${right}'`).join(', ')}]) as r (privilege)`;
const IS_TABLE_IN_SCHEMA = `c.relkind in ('r', 'p') and c.relnamespace = to_regnamespace(quote_ident(current_schema()))`;

/** Tables on which the current role lacks a privilege. */
const SELECT_TABLES_WITHOUT_RIGHTS = `select distinct c.relname::text as name from pg_class c cross join ${RIGHTS}
  where ${IS_TABLE_IN_SCHEMA} and not has_table_privilege(c.oid, r.privilege) order by 1`;

/** Throws Refusal with the missing grants where the current role lacks a privilege to serve. */
export async function assertTableRights(sql: SqlClient, { role, schema }: RoleSchema): Promise<void> {
  const missing: { readonly name: string }[] = await sql.unsafe(SELECT_TABLES_WITHOUT_RIGHTS);
  if (missing.length === 0) return;
  throw new Refusal(
    `role ${role} lacks ${ALL_RIGHTS} on ${missing.map(({ name }) => name).join(', ')}: start once with the owner of these ` +
      'tables in --migrate-database, which grants them, or run as their owner: ' +
      `grant usage on schema ${quoteIdentifier(schema)} to ${quoteIdentifier(role)}; ` +
      `grant ${ALL_RIGHTS} on all tables in schema ${quoteIdentifier(schema)} to ${quoteIdentifier(role)}`,
  );
}

/** Privileges that the owner of the schema has not granted to a role. Parameter: the role. */
const SELECT_MISSING_GRANTS = `select not has_schema_privilege($1::text, current_schema(), 'usage') as has_no_usage,
  (select count(*)::integer from pg_default_acl d cross join aclexplode(d.defaclacl) a
    where d.defaclrole = current_user::regrole and d.defaclobjtype = 'r'
      and d.defaclnamespace = to_regnamespace(quote_ident(current_schema()))
      and a.grantee = to_regrole(quote_ident($1::text)) and lower(a.privilege_type) = any(array['${TABLE_RIGHTS.join("','")}']))
    < ${TABLE_RIGHTS.length} as has_no_default,
  (select string_agg(distinct quote_ident(c.relname), ', ') from pg_class c cross join ${RIGHTS}
    where ${IS_TABLE_IN_SCHEMA} and pg_has_role(c.relowner, 'usage')
      and not has_table_privilege($1::text, c.oid, r.privilege)) as tables`;

/**
 * Grants a role the use of the tables that the current role owns or creates later. One process at a time: concurrent
 * grants of the same privileges fail.
 */
export async function grantTableRights(sql: SqlClient, role: string, schema: string): Promise<void> {
  for (const statement of await missingGrants(sql, role, schema)) await sql.unsafe(statement);
}

/** The statements that grant a role what it lacks. */
export async function missingGrants(
  sql: SqlClient,
  role: string,
  schema: string,
): Promise<readonly string[]> {
  const [found] = await sql.unsafe<
    [{ has_no_usage: boolean; has_no_default: boolean; tables: string | null }]
  >(SELECT_MISSING_GRANTS, [role]);
  const [grantee, own] = [quoteIdentifier(role), quoteIdentifier(schema)];
  return [
    ...(found.has_no_usage ? [`grant usage on schema ${own} to ${grantee}`] : []),
    ...(found.tables === null ? [] : [`grant ${ALL_RIGHTS} on ${found.tables} to ${grantee}`]),
    ...(found.has_no_default
      ? [`alter default privileges in schema ${own} grant ${ALL_RIGHTS} on tables to ${grantee}`]
      : []),
  ];
}

/** Quotes a name for use in SQL. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
