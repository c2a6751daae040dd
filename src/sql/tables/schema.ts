import { KINDS, kindOf, type Table, type TableReference } from './table.ts';

/** The flavours of SQL that create the tables. */
export type SchemaEngine = 'sqlite' | 'postgres';

/** The text that creates these tables in an empty database. Each follows those that it references. */
export function schemaText(tables: readonly Table[], engine: SchemaEngine): string {
  return `${(engine === 'sqlite' ? sqliteTexts : postgresTexts)(tables).join('\n\n')}\n`;
}

/** The tables of links come first: the engine maps the beginning of a file, where `compact` writes them. */
function sqliteTexts(tables: readonly Table[]): readonly string[] {
  const isOfLinks = ({ resource }: Table) => resource?.parent?.parent !== undefined;
  const ordered = [...tables.filter(isOfLinks), ...tables.filter((table) => !isOfLinks(table))];
  return ordered.map((table) => [tableText(table, 'sqlite'), ...indexTexts(table, 'sqlite')].join('\n'));
}

/** The keys come last, and then the foreign keys that need them. */
function postgresTexts(tables: readonly Table[]): readonly string[] {
  const keys = tables.map((table) => `alter table ${table.name} add ${keyText(table, 'postgres')};`);
  const references = tables.flatMap(({ name, references = [] }) =>
    references.map((reference) => `alter table ${name} add ${referenceText(reference, 'postgres')};`),
  );
  return [
    ...tables.map((table) =>
      [columnsText(table, 'postgres', []), ...indexTexts(table, 'postgres')].join('\n'),
    ),
    [...KEYS_LAST, ...keys].join('\n'),
    references.join('\n'),
  ];
}

const KEYS_LAST = [
  '-- In a new database no table has statistics, and the planner takes the newest index for the check of a foreign key: so the',
  '-- primary keys come after the other indexes.',
];

/** The text that creates a table with its key, without indexes. */
export function tableText(table: Table, engine: SchemaEngine): string {
  const { key, sqlite, references = [] } = table;
  const isUnique = engine === 'sqlite' && sqlite?.key !== undefined;
  return columnsText(table, engine, [
    keyText(table, engine),
    ...(isUnique ? [`unique (${key.join(', ')})`] : []),
    ...references.map((reference) => referenceText(reference, engine)),
  ]);
}

function columnsText(table: Table, engine: SchemaEngine, constraints: readonly string[]): string {
  const columns = Object.entries(engineColumns(table, engine)).map(([name, column]) => `${name} ${column}`);
  const parts = [...columns, ...constraints, ...(table.check ? [`check (${table.check})`] : [])];
  const options = engine === 'sqlite' ? ` strict${table.hasRowId ? '' : ', without rowid'}` : '';
  return `create table ${table.name} (\n  ${parts.join(',\n  ')}\n)${options};`;
}

/** The definition of each column of a table. */
export function engineColumns(table: Table, engine: SchemaEngine): Readonly<Record<string, string>> {
  const columns = Object.entries(table.columns).map(([name, column]) => {
    const { kind, isNullable } = kindOf(column);
    const begins = kind === 'count' || kind === 'local' ? ' default 0' : '';
    return [name, `${KINDS[kind][engine]}${isNullable ? '' : ' not null'}${begins}`];
  });
  return { ...table[engine]?.columns, ...Object.fromEntries(columns) };
}

/** The columns of each index of a table, or its method, with its condition; with `unique` before them. */
export function engineIndexes(table: Table, engine: SchemaEngine): Readonly<Record<string, string>> {
  return { ...table.indexes, ...table[engine]?.indexes };
}

/** The columns of the primary key of a table. */
export function engineKey(table: Table, engine: SchemaEngine): readonly string[] {
  return table[engine]?.key ?? table.key;
}

function indexTexts(table: Table, engine: SchemaEngine): readonly string[] {
  const indexes = Object.entries(engineIndexes(table, engine)).map(([name, index]) => {
    const [, unique = '', on] = /^(unique )?(.*)$/.exec(index) ?? [];
    return `create ${unique}index ${name} on ${table.name} ${on};`;
  });
  return [...indexes, ...(table[engine]?.more ?? [])];
}

function keyText(table: Table, engine: SchemaEngine): string {
  return `primary key (${engineKey(table, engine).join(', ')})`;
}

function referenceText(
  { columns, table, target, sqliteTarget = target }: TableReference,
  engine: SchemaEngine,
): string {
  const referenced = engine === 'sqlite' ? sqliteTarget : target;
  return `foreign key (${columns.join(', ')}) references ${table} (${referenced.join(', ')})`;
}
