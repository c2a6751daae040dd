import { Refusal } from '../../domain/fault.ts';
import type { SqlClient } from './sql_client.ts';

/** Who asks, and the schema in which its tables are, or would be. */
export interface RoleSchema {
  readonly role: string;
  readonly schema: string;
}

/** What a service may do in every table, and all it may do. */
export const TABLE_RIGHTS: readonly string[] = ['select', 'insert', 'update', 'delete'];
const ALL_RIGHTS = TABLE_RIGHTS.join(', ');

const RIGHTS = `unnest(array[${TABLE_RIGHTS.map((right) => `'${right}'`).join(', ')}]) as r (word)`;
const IN_SCHEMA = `c.relkind in ('r', 'p') and c.relnamespace = to_regnamespace(quote_ident(current_schema()))`;

/** Tables in which who asks may not do what a service does. */
const MISSING = `select distinct c.relname::text as name from pg_class c cross join ${RIGHTS}
  where ${IN_SCHEMA} and not has_table_privilege(c.oid, r.word) order by 1`;

/** Proves that who asks may serve. Throws Refusal that says what to grant, and where. */
export async function assertTableRights(sql: SqlClient, { role, schema }: RoleSchema): Promise<void> {
  const missing: { readonly name: string }[] = await sql.unsafe(MISSING);
  if (missing.length === 0) return;
  throw new Refusal(
    `role ${role} may not ${ALL_RIGHTS} in ${missing.map(({ name }) => name).join(', ')}: start once with ` +
      '--migrate-database naming the owner of these tables, which grants it, or as their owner: ' +
      `grant usage on schema ${quoteIdentifier(schema)} to ${quoteIdentifier(role)}; ` +
      `grant ${ALL_RIGHTS} on all tables in schema ${quoteIdentifier(schema)} to ${quoteIdentifier(role)}`,
  );
}

/** What the owner of the schema has not granted to a role. Parameters: the role. */
const SELECT_MISSING_GRANTS = `select not has_schema_privilege($1::text, current_schema(), 'usage') as has_no_usage,
  (select count(*)::integer from pg_default_acl d cross join aclexplode(d.defaclacl) a
    where d.defaclrole = current_user::regrole and d.defaclobjtype = 'r'
      and d.defaclnamespace = to_regnamespace(quote_ident(current_schema()))
      and a.grantee = to_regrole(quote_ident($1::text)) and lower(a.privilege_type) = any(array['${TABLE_RIGHTS.join("','")}']))
    < ${TABLE_RIGHTS.length} as has_no_default,
  (select string_agg(distinct quote_ident(c.relname), ', ') from pg_class c cross join ${RIGHTS}
    where ${IN_SCHEMA} and pg_has_role(c.relowner, 'usage')
      and not has_table_privilege($1::text, c.oid, r.word)) as tables`;

interface MissingGrants {
  readonly has_no_usage: boolean;
  readonly has_no_default: boolean;
  readonly tables: string | null;
}

export async function hasMissingGrants(sql: SqlClient, role: string): Promise<boolean> {
  return grantsOf(await missingGrants(sql, role), '', '').length > 0;
}

async function missingGrants(sql: SqlClient, role: string): Promise<MissingGrants> {
  const [found] = (await sql.unsafe(SELECT_MISSING_GRANTS, [role])) as [MissingGrants];
  return found;
}

/**
 * Lets a role use the tables that who asks owns, and those it makes later. One process at a time: the engine does not
 * wait for another one that grants the same.
 */
export async function grantTableRights(sql: SqlClient, role: string, schema: string): Promise<void> {
  const statements = grantsOf(await missingGrants(sql, role), quoteIdentifier(role), quoteIdentifier(schema));
  for (const statement of statements) await sql.unsafe(statement);
}

function grantsOf(
  { has_no_usage, has_no_default, tables }: MissingGrants,
  role: string,
  schema: string,
): readonly string[] {
  return [
    ...(has_no_usage ? [`grant usage on schema ${schema} to ${role}`] : []),
    ...(tables === null ? [] : [`grant ${ALL_RIGHTS} on ${tables} to ${role}`]),
    ...(has_no_default
      ? [`alter default privileges in schema ${schema} grant ${ALL_RIGHTS} on tables to ${role}`]
      : []),
  ];
}

/** A name as statements have it. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
