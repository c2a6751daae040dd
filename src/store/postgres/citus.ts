import { INSTANCE_TABLES, REALM_COLUMN, REALM_TABLES } from './tables.ts';

const HEADING = `-- Turns the tables of authrealm into Citus tables: tables of the installation become reference tables, and tables of
-- realm data are distributed by their realm, with all rows of a realm on one node. Run it on the coordinator as the owner
-- of the tables, and again after every migration: it skips tables that are distributed already.`;

/** A referenced table may already be in the catalog of Citus as a local table, so its kind is compared. */
const IS_REFERENCE = `partmethod = 'n' and repmodel = 't'`;
const IS_DISTRIBUTED = `partmethod = 'h'`;

/** The SQL that turns the tables into Citus tables, co-located by realm. */
export function citusSql(): string {
  const [first = '', ...others] = REALM_TABLES;
  const calls = [
    ...INSTANCE_TABLES.map((table) => callUnless(table, IS_REFERENCE, `create_reference_table('${table}')`)),
    callUnless(first, IS_DISTRIBUTED, distribute(first, 'none')),
    ...others.map((table) => callUnless(table, IS_DISTRIBUTED, distribute(table, first))),
  ];
  return `${[HEADING, ...calls].join('\n\n')}\n`;
}

function distribute(table: string, colocated: string): string {
  return `create_distributed_table('${table}', '${REALM_COLUMN}', colocate_with => '${colocated}')`;
}

function callUnless(table: string, kind: string, call: string): string {
  const isDone = `select 1 from pg_dist_partition where logicalrelid = '${table}'::regclass and ${kind}`;
  return `select ${call}\n  where not exists (${isDone});`;
}
