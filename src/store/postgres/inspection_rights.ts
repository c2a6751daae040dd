import type { EngineState } from '../../doctor/inspection.ts';
import { TABLE_RIGHTS } from './rights.ts';
import type { InspectionQuery } from './row_stream.ts';

/** The attributes and privileges of the serving role. */
interface RoleAttributes {
  readonly role: string;
  readonly schema: string;
  readonly is_superuser: boolean;
  readonly abilities: readonly { readonly ability: string; readonly is_allowed: boolean }[];
}

/** Predefined roles that reach beyond the database. */
const SERVER_ROLES = ['pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'];

const SELECT_ROLE = `
  select current_user::text as role, current_schema()::text as schema, rolsuper as is_superuser,
    json_build_array(
      json_build_object('ability', 'create roles', 'is_allowed', rolcreaterole),
      json_build_object('ability', 'create databases', 'is_allowed', rolcreatedb),
      json_build_object('ability', 'read every database by replication', 'is_allowed', rolreplication),
      json_build_object('ability', 'bypass row security', 'is_allowed', rolbypassrls),
      json_build_object('ability', 'create tables in schema ' || current_schema(),
        'is_allowed', has_schema_privilege(current_schema(), 'create')),
      json_build_object('ability', 'create schemas', 'is_allowed', has_database_privilege(current_database(), 'create'))
    )::text as abilities
  from pg_roles where rolname = current_user`;

const SELECT_MEMBERSHIPS = `
  select rolname::text as role from pg_roles
  where rolname in (${SERVER_ROLES.map((name) => `'${name}'`).join(', ')}) and pg_has_role(oid, 'usage') order by 1`;

interface TableRight {
  readonly table: string;
  readonly right: string;
  readonly is_allowed: boolean;
  readonly is_owned: boolean;
}

const EXCESS_RIGHTS = ['truncate', 'references', 'trigger'];

const SELECT_TABLE_RIGHTS = `
  select c.relname::text as "table", r.privilege as "right", has_table_privilege(c.oid, r.privilege) as is_allowed,
    pg_has_role(c.relowner, 'usage') as is_owned
  from pg_class c
    cross join unnest(array[${[...TABLE_RIGHTS, ...EXCESS_RIGHTS].map((privilege) => `'${privilege}'`).join(', ')}]) as r (privilege)
  where c.relkind in ('r', 'p') and c.relnamespace = to_regnamespace(quote_ident(current_schema()))
  order by 1, 2`;

/** Reports the privileges that the role lacks; and as notes those that it has in addition to select, insert, update and delete. */
export async function roleState(rows: InspectionQuery): Promise<EngineState> {
  const [found] = await Array.fromAsync(
    rows<Omit<RoleAttributes, 'abilities'> & { abilities: string }>(SELECT_ROLE),
  );
  if (!found) return { facts: [], findings: ['the server did not return the current role'] };
  const { role, schema, is_superuser } = found;
  const facts = [`role ${role}, schema ${schema}`];
  if (is_superuser) return { facts, findings: [], notes: [`role ${role} is a superuser: ${ROLE_ADVICE}`] };
  const abilities = (JSON.parse(found.abilities) as RoleAttributes['abilities'])
    .filter(({ is_allowed }) => is_allowed)
    .map(({ ability }) => `role ${role} may ${ability}: ${ROLE_ADVICE}`);
  const memberships = await Array.fromAsync(
    rows<{ role: string }>(SELECT_MEMBERSHIPS),
    (membership) => `role ${role} is a member of ${membership.role}: ${ROLE_ADVICE}`,
  );
  const rights = await Array.fromAsync(rows<TableRight>(SELECT_TABLE_RIGHTS));
  const { excess, missing } = tableRights(role, rights);
  return { facts, findings: missing, notes: [...abilities, ...memberships, ...excess] };
}

const ROLE_ADVICE =
  'a service needs only select, insert, update and delete; serve with a role that has no more, and pass the owner of ' +
  'the schema with --migrate-database';

function tableRights(
  role: string,
  rights: readonly TableRight[],
): { readonly excess: readonly string[]; readonly missing: readonly string[] } {
  const tablesWhere = (holds: (right: TableRight) => boolean) =>
    [...new Set(rights.filter(holds).map(({ table }) => table))].join(', ');
  const owned = tablesWhere(({ is_owned }) => is_owned);
  const beyond = EXCESS_RIGHTS.map((privilege) => ({
    privilege,
    tables: tablesWhere(({ right, is_allowed, is_owned }) => right === privilege && is_allowed && !is_owned),
  }));
  const missing = TABLE_RIGHTS.map((privilege) => ({
    privilege,
    tables: tablesWhere(({ right, is_allowed }) => right === privilege && !is_allowed),
  }));
  return {
    excess: [
      ...(owned === '' ? [] : [`role ${role} owns ${owned}: ${ROLE_ADVICE}`]),
      ...beyond
        .filter(({ tables }) => tables !== '')
        .map(({ privilege, tables }) => `role ${role} has ${privilege} on ${tables}: ${ROLE_ADVICE}`),
    ],
    missing: missing
      .filter(({ tables }) => tables !== '')
      .map(({ privilege, tables }) => `role ${role} lacks ${privilege} on ${tables}: grant it`),
  };
}
