import type { InspectionQuery } from '../../../sql/postgres/reading.ts';
import { engineColumns, engineIndexes, engineKey } from '../../../sql/tables/schema.ts';
import type { Table } from '../../../sql/tables/table.ts';
import { TABLES } from '../../../sql/tables/tables.ts';
import type { Inspection } from '../../doctor/inspection.ts';
import { type SchemaObject, schemaDifferences } from '../inspection_queries.ts';

/** Excludes objects of extensions. */
const IS_IN_SCHEMA = `c.relnamespace = to_regnamespace(quote_ident(current_schema()))
  and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')`;

/** Every table, column, constraint and index of the schema. A not-null constraint is part of its column. */
const SELECT_OBJECTS = `
  select 'table' as type, c.relname::text as name, '' as definition
  from pg_class c where c.relkind in ('r', 'p') and ${IS_IN_SCHEMA}
  union all
  select 'column', c.relname || '.' || a.attname,
    format_type(a.atttypid, a.atttypmod)
      || case when a.attcollation in (0, t.typcollation) then '' else ' collate "' || l.collname || '"' end
      || case when a.attnotnull then ' not null' else '' end
      || coalesce(' default ' || regexp_replace(pg_get_expr(d.adbin, d.adrelid), '::\\w+$', ''), '')
  from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
    left join pg_collation l on l.oid = a.attcollation
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped and ${IS_IN_SCHEMA}
  union all
  select 'constraint', c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
  from pg_class c join pg_constraint k on k.conrelid = c.oid
  where k.contype in ('c', 'f', 'p', 'u') and ${IS_IN_SCHEMA}
  union all
  select 'index', c.relname::text,
    case when i.indisunique then 'unique ' else '' end || regexp_replace(pg_get_indexdef(c.oid), '^.* USING ', '')
  from pg_class c join pg_index i on i.indexrelid = c.oid
  where ${IS_IN_SCHEMA}
  order by 1, 2`;

/** The objects of the current schema. */
export function schemaObjects(rows: InspectionQuery): Promise<readonly SchemaObject[]> {
  return rows<SchemaObject>(SELECT_OBJECTS);
}

/** Compares the schema with that of this release. Yields nothing where the applied migrations differ. */
export async function* postgresSchemaDifferences(
  rows: InspectionQuery,
  migrations: Inspection['migrations'],
) {
  const { applied, known } = await migrations();
  const versions = [applied, known].map((each) => each.map(({ version }) => version).join());
  if (versions[0] !== versions[1]) return;
  yield* schemaDifferences(await schemaObjects(rows), TABLES.flatMap(objectsOf));
}

/** The objects of a table as SELECT_OBJECTS describes them. */
export function objectsOf(table: Table): readonly SchemaObject[] {
  const { name, references = [], check } = table;
  const key = engineKey(table, 'postgres').join(', ');
  return [
    { type: 'table', name, definition: '' },
    ...Object.entries(engineColumns(table, 'postgres')).map(([column, definition]) => ({
      type: 'column',
      name: `${name}.${column}`,
      definition,
    })),
    { type: 'constraint', name: `${name}.${name}_pkey`, definition: `PRIMARY KEY (${key})` },
    { type: 'index', name: `${name}_pkey`, definition: `unique btree (${key})` },
    ...references.map(({ columns, table: parent, target }) => ({
      type: 'constraint',
      name: `${name}.${name}_${columns.join('_')}_fkey`,
      definition: `FOREIGN KEY (${columns.join(', ')}) REFERENCES ${parent}(${target.join(', ')})`,
    })),
    ...(check
      ? [
          {
            type: 'constraint',
            name: `${name}.${name}_${check.split(' ')[0]}_check`,
            definition: `CHECK ((${check}))`,
          },
        ]
      : []),
    ...Object.entries(engineIndexes(table, 'postgres')).map(([index, definition]) => ({
      type: 'index',
      name: index,
      definition: indexDefinition(definition),
    })),
  ];
}

/** An index as the server prints it: with its method, the type of texts, and conditions in parentheses. */
function indexDefinition(text: string): string {
  const [, unique = '', method = 'btree', on = ''] = /^(unique )?(?:using (\w+) )?(.*)$/.exec(text) ?? [];
  const printed = on
    .replace(/'[^']*'/g, '$&::text')
    .replace(/with \((\w+) = (\w+)\)$/, "WITH ($1='$2')")
    .replace(/where (.*)$/, 'WHERE ($1)')
    .replace(/is (not )?null/, (is) => is.toUpperCase());
  return `${unique}${method} ${printed}`;
}
