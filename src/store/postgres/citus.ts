import { INSTANCE_TABLES, REALM_COLUMN, REALM_TABLES } from './tables.ts';

const HEADING = `-- Makes Citus distributed tables of the schema of authrealm: tables of the installation are kept whole on every node,
-- those of realm data are spread by their realm, all rows of a realm on one node. To be run by the owner of the tables on
-- the coordinator, and again after every migration: what is distributed already is passed over.`;

/** A table that another one refers to may already be in the catalogue of Citus as a local one: its kind decides. */
const IS_REFERENCE = `partmethod = 'n' and repmodel = 't'`;
const IS_DISTRIBUTED = `partmethod = 'h'`;

/** The SQL that turns the schema into Citus distributed tables, co-located by realm. */
export function citusSql(): string {
  const [first = '', ...others] = REALM_TABLES;
  const calls = [
    ...INSTANCE_TABLES.map((table) => unless(table, IS_REFERENCE, `create_reference_table('${table}')`)),
    unless(first, IS_DISTRIBUTED, distribute(first, 'none')),
    ...others.map((table) => unless(table, IS_DISTRIBUTED, distribute(table, first))),
  ];
  return `${[HEADING, ...calls].join('\n\n')}\n`;
}

function distribute(table: string, beside: string): string {
  return `create_distributed_table('${table}', '${REALM_COLUMN}', colocate_with => '${beside}')`;
}

function unless(table: string, kind: string, call: string): string {
  const isThere = `select 1 from pg_dist_partition where logicalrelid = '${table}'::regclass and ${kind}`;
  return `select ${call}\n  where not exists (${isThere});`;
}
