import { readFileSync } from 'node:fs';
import type { InspectionQueries } from '../inspection_queries.ts';
import type { Migration } from '../migrations.ts';
import type { InspectionQuery } from './inspection.ts';

/** What the newest migration leaves in a schema, a line each: kind, name and definition. */
const SCHEMA_URL = new URL('./schema.tsv', import.meta.url);

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly definition: string;
}

/** What extensions have brought is theirs. */
const IS_OURS = `c.relnamespace = to_regnamespace(quote_ident(current_schema()))
  and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')`;

/** Every table, column, constraint and index of the schema. Constraints of null stand with their columns. */
const PARTS = `
  select 'table' as type, c.relname::text as name, '' as definition
  from pg_class c where c.relkind in ('r', 'p') and ${IS_OURS}
  union all
  select 'column', c.relname || '.' || a.attname,
    format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
      || case when a.attcollation in (0, t.typcollation) then '' else ' collate ' || l.collname end
  from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
    left join pg_collation l on l.oid = a.attcollation
  where c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped and ${IS_OURS}
  union all
  select 'constraint', c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
  from pg_class c join pg_constraint k on k.conrelid = c.oid
  where k.contype in ('c', 'f', 'p', 'u') and ${IS_OURS}
  union all
  select 'index', c.relname::text,
    case when i.indisunique then 'unique ' else '' end || regexp_replace(pg_get_indexdef(c.oid), '^.* USING ', '')
  from pg_class c join pg_index i on i.indexrelid = c.oid
  where ${IS_OURS}
  order by 1, 2`;

/** The parts of the schema that is there. */
export function schemaObjects(rows: InspectionQuery): AsyncIterable<SchemaObject> {
  return rows<SchemaObject>(PARTS);
}

/** Compares the schema with the one that this release makes; not where it has other migrations. */
export async function* postgresSchemaDifferences(
  rows: InspectionQuery,
  applied: InspectionQueries['applied'],
  known: readonly Migration[],
) {
  const versions = await Array.fromAsync(applied(), ({ version }) => version);
  if (versions.join() !== known.map(({ version }) => version).join()) return;
  const found = new Map<string, SchemaObject>();
  for await (const part of schemaObjects(rows)) found.set(`${part.type} ${part.name}`, part);
  for (const { type, name, definition } of expectedObjects()) {
    const there = found.get(`${type} ${name}`);
    found.delete(`${type} ${name}`);
    if (!there) yield { type, name, is: 'missing' };
    else if (there.definition !== definition) yield { type, name, is: 'not as this program makes it' };
  }
  for (const { type, name } of found.values()) yield { type, name, is: 'none of this program' };
}

function expectedObjects(): readonly SchemaObject[] {
  const lines = readFileSync(SCHEMA_URL, 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const [type = '', name = '', definition = ''] = line.split('\t');
    return { type, name, definition };
  });
}
