import {
  ancestry,
  keyColumns,
  type Member,
  membersOf,
  type Resource,
  referencedResource,
  valueType,
} from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type { Dialect } from '../dialect.ts';
import {
  AUTHENTICATING_COLUMNS,
  authenticatingColumns,
  comparedColumn,
  FOLDED_WITH,
  foldedMembers,
  hashColumn,
  mayBeMissing,
  WORDS,
  wordMembers,
} from './derived_columns.ts';
import {
  type ColumnKind,
  parameterOf,
  type Table,
  type TableColumn,
  type TableReference,
  table,
} from './table.ts';
import { wordTable } from './word_table.ts';

/** The table of a resource, from its description. On SQLite a record has a slot that its ID names, and a realm its number. */
export function resourceTable(resource: Resource): Table {
  const ids = keyColumns(resource);
  const hashed = membersOf(resource).filter(({ annotation }) => annotation.hashColumn);
  const hasWords = wordMembers(resource).length > 0;
  return table({
    name: resource.table,
    placement: 'by realm',
    columns: {
      ...Object.fromEntries(
        ids.map((name) => [name, name === 'realm_id' && resource.parent ? 'realm' : 'id_bytes']),
      ),
      ...Object.fromEntries(membersOf(resource).map((member) => [storedName(member), columnOf(member)])),
      ...foldedColumns(resource),
      created_at: 'instant',
      updated_at: 'instant',
      revision: 'revision',
      ...(hasWords ? { [WORDS]: 'text?' } : {}),
      ...(authenticatingColumns(resource).length > 0 ? AUTHENTICATING_COLUMNS : {}),
    } as Readonly<Record<string, TableColumn>>,
    key: keyOf(resource),
    hasRowId: true,
    references: referencesOf(resource),
    indexes: indexesOf(resource),
    sqlite: {
      columns: {
        slot: 'integer not null',
        ...Object.fromEntries(hashed.map(({ name }) => [hashColumn(name), 'integer not null'])),
      },
      key: ['slot'],
      indexes: Object.fromEntries(
        hashed.map(({ name }) => [`${resource.table}_${hashColumn(name)}`, `(${hashColumn(name)})`]),
      ),
      ...(hasWords ? { more: wordTable(resource.table) } : {}),
    },
    postgres: {
      indexes: {
        // A hash index takes the same for a text of any length, and answers equality alone.
        ...Object.fromEntries(
          hashed.map(({ name }) => [
            `${resource.table}_${name}_hash`,
            `using hash (${comparedColumn(resource, name)})`,
          ]),
        ),
        ...(hasWords ? { [`${resource.table}_words`]: WORD_INDEX } : {}),
      },
    },
    resource,
  });
}

/** Returns SQL for a parameter as a column of these records stores it. */
export function parametersOf(resource: Resource, dialect: Pick<Dialect, 'id' | 'realm'>) {
  const { columns } = resourceTable(resource);
  return (column: string, parameter = '?') => parameterOf(columns[column], dialect, parameter);
}

/** SQL for whether columns of these records have the values of the next parameters. */
export function haveValues(resource: Resource, columns: readonly string[], dialect: Dialect): string {
  const parameter = parametersOf(resource, dialect);
  return columns.map((column) => `${column} = ${parameter(column)}`).join(' and ');
}

/** The columns of a record's key: the realm, and its own ID. */
function keyOf(resource: Resource): readonly string[] {
  const ids = keyColumns(resource);
  return [...new Set([...ids.slice(0, 1), ...ids.slice(-1)])];
}

/** The kinds of members by the type of their values, in the words of zod. */
const MEMBER_KINDS: ReadonlyMap<string, ColumnKind> = new Map([
  ['string', 'text'],
  ['enum', 'text'],
  ['boolean', 'flag'],
  ['array', 'json'],
  ['object', 'json'],
]);

/** How the value of a member is stored. */
export function memberKind(member: Member): ColumnKind {
  const { name, annotation } = member;
  if (annotation.references) return 'id_bytes';
  if (annotation.secret === 'sealed') return 'sealed';
  const kind = MEMBER_KINDS.get(valueType(member));
  if (!kind) throw new Error(`${name} has no kind of column, because its type is ${valueType(member)}`);
  return kind;
}

function columnOf(member: Member): TableColumn {
  const kind = memberKind(member);
  return mayBeMissing(member.schema) || member.schema.safeParse(null).success ? `${kind}?` : kind;
}

/** The column of a member. */
export function storedName({ name, annotation }: Member): string {
  return annotation.secret === 'sealed' ? `${name}_sealed` : name;
}

function foldedColumns(resource: Resource): Readonly<Record<string, TableColumn>> {
  const folded = foldedMembers(resource);
  if (folded.length === 0) return {};
  const keys = folded.map((member) => [comparedColumn(resource, member.name), columnOf(member)] as const);
  return { ...Object.fromEntries(keys), [FOLDED_WITH]: 'text' };
}

function referencesOf(resource: Resource): readonly TableReference[] {
  const { parent } = resource;
  const above = parent
    ? [
        {
          columns: keyColumns(resource).slice(0, -1),
          table: parent.table,
          target: keyOf(parent),
          ...(parent.parent ? {} : { sqliteTarget: ['slot'] }),
        },
      ]
    : [];
  const named = membersOf(resource).flatMap(({ name, annotation }) => {
    if (!annotation.references) return [];
    const target = referencedResource(resource, name, RESOURCES);
    return [{ columns: ['realm_id', name], table: target.table, target: keyOf(target) }];
  });
  return [...above, ...named];
}

/** For lists below a parent or a reference in their orders, for unique members, and for each set of members that finds records. */
function indexesOf(resource: Resource): Readonly<Record<string, string>> {
  const { table, unique } = resource;
  const ids = keyColumns(resource);
  const [scope, id = ''] = [ids.slice(0, -1), ids.at(-1)];
  const compared = (members: readonly string[]) => members.map((name) => comparedColumn(resource, name));
  const inOrder = (...columns: readonly string[]) => `(${[...columns, id].join(', ')})`;
  const inRealm = (members: readonly string[]) => `(${['realm_id', ...compared(members)].join(', ')})`;
  const below = ancestry(resource).at(-2)?.foreignKey?.replace(/_id$/, '');
  const references = membersOf(resource).filter(({ annotation }) => annotation.references);
  return Object.fromEntries([
    ...unique.map((members) => [`${table}_${members.at(-1)}`, `unique ${inRealm(members)}`]),
    [`${table}_${scope.length > 1 ? `of_${below}` : 'created'}`, inOrder(...scope, 'created_at')],
    ...(resource.filterables?.updated_at ? [[`${table}_updated`, inOrder(...scope, 'updated_at')]] : []),
    ...references.map(({ name }) => [
      `${table}_of_${name.replace(/_id$/, '')}`,
      inOrder('realm_id', name, 'created_at'),
    ]),
    ...soughtMembers(resource).map((members) => [`${table}_by_${members.join('_')}`, inRealm(members)]),
  ]);
}

/** The sets of members that find records and that have no other index. */
function soughtMembers(resource: Resource): readonly (readonly string[])[] {
  const { unique, reverseLookup, searchAllRealms } = resource;
  const members = new Map(membersOf(resource).map((member) => [member.name, member]));
  // Searches of all realms find a member with a hash column by it.
  const searched = searchAllRealms?.by.filter(
    (names) => !names.some((name) => members.get(name)?.annotation.hashColumn),
  );
  const isUnique = (names: readonly string[]) =>
    unique.some((each) => each.length === names.length && each.every((name) => names.includes(name)));
  return [...(reverseLookup?.by ?? []), ...(searched ?? [])].filter(
    (names) => names.every((name) => members.has(name)) && !isUnique(names),
  );
}

/**
 * The words of names, e-mail addresses and usernames, for searches by their beginnings (docs/decisions/0015-lists-and-search.md). The
 * program computes them, with a space between two. A search reads all words that wait to be sorted into the index, so they are few.
 */
const WORD_INDEX = `using gin (array_to_tsvector(string_to_array(words, ' '))) with (gin_pending_list_limit = 256)`;
