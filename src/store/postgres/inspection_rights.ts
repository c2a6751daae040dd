import type { EngineState } from '../../doctor/inspection.ts';
import type { InspectionQuery } from './inspection.ts';
import { TABLE_RIGHTS } from './rights.ts';

/** What a role may do in general. */
interface Role {
  readonly role: string;
  readonly schema: string;
  readonly is_superuser: boolean;
  readonly may: readonly { readonly does: string; readonly is_allowed: boolean }[];
}

/** Roles of the engine that reach beyond the database. */
const POWERS = ['pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'];

const ROLE = `
  select current_user::text as role, current_schema()::text as schema, rolsuper as is_superuser,
    json_build_array(
      json_build_object('does', 'make roles', 'is_allowed', rolcreaterole),
      json_build_object('does', 'make databases', 'is_allowed', rolcreatedb),
      json_build_object('does', 'read every database as a standby does', 'is_allowed', rolreplication),
      json_build_object('does', 'pass row security by', 'is_allowed', rolbypassrls),
      json_build_object('does', 'make tables in schema ' || current_schema(),
        'is_allowed', has_schema_privilege(current_schema(), 'create')),
      json_build_object('does', 'make schemas', 'is_allowed', has_database_privilege(current_database(), 'create'))
    )::text as may
  from pg_roles where rolname = current_user`;

const MEMBERSHIPS = `
  select rolname::text as role from pg_roles
  where rolname in (${POWERS.map((name) => `'${name}'`).join(', ')}) and pg_has_role(oid, 'usage') order by 1`;

interface TableRight {
  readonly table: string;
  readonly right: string;
  readonly is_allowed: boolean;
  readonly is_owned: boolean;
}

const EXCESS_RIGHTS = ['truncate', 'references', 'trigger'];

const SELECT_TABLE_RIGHTS = `
  select c.relname::text as "table", r.word as "right", has_table_privilege(c.oid, r.word) as is_allowed,
    pg_has_role(c.relowner, 'usage') as is_owned
  from pg_class c
    cross join unnest(array[${[...TABLE_RIGHTS, ...EXCESS_RIGHTS].map((word) => `'${word}'`).join(', ')}]) as r (word)
  where c.relkind in ('r', 'p') and c.relnamespace = to_regnamespace(quote_ident(current_schema()))
  order by 1, 2`;

/** Whether the role may select, insert, update and delete in every table, and nothing else. */
export async function roleState(rows: InspectionQuery): Promise<EngineState> {
  const [told] = await Array.fromAsync(rows<Omit<Role, 'may'> & { may: string }>(ROLE));
  if (!told) return { facts: [], findings: ['the engine does not tell who is asking'] };
  const { role, schema, is_superuser } = told;
  const facts = [`role ${role}, schema ${schema}`];
  if (is_superuser) return { facts, findings: [`role ${role} is a superuser: ${ADVICE}`] };
  const may = (JSON.parse(told.may) as Role['may'])
    .filter(({ is_allowed }) => is_allowed)
    .map(({ does }) => `role ${role} may ${does}: ${ADVICE}`);
  const memberships = await Array.fromAsync(
    rows<{ role: string }>(MEMBERSHIPS),
    (power) => `role ${role} has the powers of ${power.role}: ${ADVICE}`,
  );
  const rights = await Array.fromAsync(rows<TableRight>(SELECT_TABLE_RIGHTS));
  return { facts, findings: [...may, ...memberships, ...tableFindings(role, rights)] };
}

const ADVICE =
  'a service needs to select, insert, update and delete, and no more. Serve as such a role, and name the owner of the ' +
  'schema by --migrate-database';

function tableFindings(role: string, rights: readonly TableRight[]): readonly string[] {
  const tablesWhere = (holds: (right: TableRight) => boolean) =>
    [...new Set(rights.filter(holds).map(({ table }) => table))].join(', ');
  const owned = tablesWhere(({ is_owned }) => is_owned);
  const beyond = EXCESS_RIGHTS.map((word) => ({
    word,
    tables: tablesWhere(({ right, is_allowed, is_owned }) => right === word && is_allowed && !is_owned),
  }));
  const missing = TABLE_RIGHTS.map((word) => ({
    word,
    tables: tablesWhere(({ right, is_allowed }) => right === word && !is_allowed),
  }));
  return [
    ...(owned === '' ? [] : [`role ${role} owns ${owned}: ${ADVICE}`]),
    ...beyond
      .filter(({ tables }) => tables !== '')
      .map(({ word, tables }) => `role ${role} may ${word} ${tables}: ${ADVICE}`),
    ...missing
      .filter(({ tables }) => tables !== '')
      .map(({ word, tables }) => `role ${role} may not ${word} in ${tables}: grant it`),
  ];
}
