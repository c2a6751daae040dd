import { type StoredId, uuidText } from '../../model/id.ts';
import {
  type AnyRecord,
  isVisible,
  type Key,
  keyColumns,
  type Member,
  membersOf,
  type Resource,
  referencedResource,
} from '../../model/resource.ts';
import type { KeyedRecord, Patch, Write } from '../../model/store.ts';
import type { Dialect } from '../../sql/dialect.ts';
import {
  authenticatingColumns,
  type Column,
  comparedColumn,
  computedColumns,
  derivedColumns,
  FOLDED_WITH,
  foldedMembers,
  hashColumn,
  mayBeMissing,
  WORDS,
  wordMembers,
} from '../../sql/tables/derived_columns.ts';
import { haveValues, memberKind, parametersOf, resourceTable, storedName } from '../../sql/tables/records.ts';
import { KINDS, type KindStorage, rowOrder } from '../../sql/tables/table.ts';
import type { SqlValue, Work } from '../../sql/transaction_work.ts';

type Row = Record<string, unknown>;

/** The statements that patch a set of members. */
export interface PatchStatements {
  /** Parameters: `values`, then the key. Returns the visible members after the update. */
  readonly update: string;
  /** Parameters: `values`, the key, then the expected revision. */
  readonly updateIfRevision: string;
  /** `before`: the record, whose other members may have words. */
  readonly values: (patch: Pick<Patch, 'members' | 'at' | 'revision'>, before?: AnyRecord) => SqlValue[];
}

/** The SQL statements of one resource, and the conversions between records and rows. */
export type Statements = ReturnType<typeof statementsFor> & {
  /** Returns the values of the columns that authenticate a member, for the values of a write. Absent if the resource has none. */
  readonly authenticate?: (write: Write) => Work<Patch['members']>;
};

/** A member that names another record. */
export interface Reference {
  readonly member: string;
  readonly target: Resource;
  /** Parameters: realm, ID. Selects a row if that record exists. */
  readonly exists: string;
}

/** The statements of each of these resources, derived at their first use. Throws for any other resource: a bug. */
export function statementsOver(
  all: readonly Resource[],
  dialect: Dialect,
): (resource: Resource) => Statements {
  const cache = new Map<Resource, Statements>();
  return (resource) =>
    cache.getOrInsertComputed(resource, () => {
      if (!all.includes(resource)) throw new Error(`${resource.name} has no table`);
      return statementsFor(resource, all, dialect);
    });
}

function statementsFor(resource: Resource, all: readonly Resource[], dialect: Dialect) {
  const keys = keyColumns(resource);
  const derived = derivedColumns(resource, dialect);
  const computed = computedColumns(resource, dialect);
  const columns = [...membersOf(resource).flatMap(memberColumns), ...derived, ...stampColumns(dialect)];
  const written = [...keys, ...columns.map(({ name }) => name)];
  const insertion = dialect.insertion(resource, written);
  const stored = columns.filter((column) => column.member !== undefined);
  const own = keys.at(-1) as string;
  const parameter = parametersOf(resource, dialect);
  const has = (column: string) => `${column} = ${parameter(column)}`;
  const [where, inRealm] = [keys.map(has).join(' and '), has('realm_id')];
  const assign = ({ name }: Column) => has(name);
  const id = own === 'id' ? 'id' : `${own} as id`;
  const names = (of: readonly Column[]) => of.map((column) => column.name).join(', ');
  const visible = [id, ...stored.filter((column) => column.isVisible).map(({ name }) => name)];
  const isMisplaced = resource.parent ? 'false' : dialect.isMisplaced;
  const withComputed = `${names([...stored, ...computed])}, ${isMisplaced} as is_misplaced`;
  const decode = decoding(stored.filter((column) => column.decode || column.name !== column.member));
  const { table } = resource;
  const update = (patched: readonly Column[], condition = '') => {
    const set = [...patched.map(assign), `updated_at = ${dialect.greatest}(updated_at, ?)`, 'revision = ?'];
    return `update ${table} set ${set.join(', ')} where ${where}${condition}`;
  };

  return Object.freeze({
    /** Parameters: the key. Selects the visible members. */
    select: `select ${visible.join(', ')} from ${table} where ${where}`,
    /** Parameters: the key. Selects all members, secrets as stored. */
    selectStored: `select ${id}, ${names(stored)} from ${table} where ${where}`,
    /** The select expressions of the ID and the visible members; `decode` reads such rows. */
    visible,
    /** The same with those of the IDs above the record, that of the realm by this SQL; `decodeKeyed` reads such rows. */
    visibleKeyed: (realm: string) =>
      [...(resource.parent ? [`${realm} as realm_id`, ...keys.slice(1, -1)] : []), ...visible].join(', '),
    /** The columns of the table that an insert writes. */
    columns: written,
    /** Before the insert of a realm. Parameter: the realm. */
    createClock: resource.parent ? undefined : dialect.createClock,
    /** Parameters: `insertValues`. */
    insert: insertion.text,
    /** Parameters: `replaceValues`, then the key. */
    replace: `update ${table} set ${columns.map(assign).join(', ')} where ${where}`,
    /** Sets the time and the revision alone. Parameters: these, then the key. */
    touch: update([]),
    /** Deletes records of one realm. Parameters: the realm, the IDs. */
    removeAmong: `delete from ${table} where ${inRealm} and ${dialect.lists.isAmong(own, dialect.id)}`,
    /** Parameters: the key. Selects the visible members and `is_protected`. */
    selectForRemoval: `select ${visible.join(', ')}, ${resource.protectedBy ?? '0'} as is_protected from ${table} where ${where}`,
    /** Parameters: realm, ID. Selects a row if the realm has this record, below any user. */
    selectInRealm: `select 1 from ${table} where ${inRealm} and ${has(own)}`,
    ...scansOf(resource, { stored: names(stored), withComputed }, dialect),
    /** The names of the computed columns of a row of `scanComputed` that do not match its members. */
    wrongColumns: (row: Row) => [
      ...(row.is_misplaced ? ['slot'] : []),
      ...computed
        .filter(({ name, encode }) => String(row[name]) !== String(encode(row)))
        .map(({ name }) => name),
    ],
    insertValues: (key: Key, record: AnyRecord): SqlValue[] => [
      ...insertion.lead(record.id),
      ...key,
      ...columns.map((column) => column.encode(record)),
    ],
    replaceValues: (record: AnyRecord) => columns.map(({ encode }) => encode(record)),
    decode,
    decodeKeyed: (row: Row) => decodeKeyed(row, decode),
    /** Cached for each set of members. Throws if the resource has no such member. */
    patchStatements: patchStatementsFor(
      resource,
      columns,
      (...patch) => `${update(...patch)} returning ${visible.join(', ')}`,
    ),
    /** The column of a member, and the encoding of its values. */
    columnOf: (member: string) => {
      const column = columns.find((each) => each.member === member);
      if (!column) throw new Error(`${resource.name} has no member ${member}`);
      return { name: column.name, encode: (value: unknown) => column.encode({ [member]: value }) };
    },
    /** The set of members whose unique index has exactly these columns and the realm. */
    uniqueMembers: (found: readonly string[]) =>
      resource.unique.find(
        (members) => members.map((member) => comparedColumn(resource, member)).join() === found.join(),
      ),
    /** The members that name another record. */
    references: membersOf(resource).flatMap(({ name, annotation }) =>
      annotation.references ? [referenceOf(name, referencedResource(resource, name, all), dialect)] : [],
    ),
  });
}

function referenceOf(member: string, target: Resource, dialect: Dialect): Reference {
  const where = haveValues(target, ['realm_id', 'id'], dialect);
  return { member, target, exists: `select 1 from ${target.table} where ${where}` };
}

/** Caches the statements for each set of patched members. */
function patchStatementsFor(
  resource: Resource,
  columns: readonly Column[],
  updateOf: (patched: readonly Column[], condition?: string) => string,
) {
  const cache = new Map<string, PatchStatements>();

  function build(names: readonly string[]): PatchStatements {
    const patched = patchedColumns(resource, columns, new Set(names));
    return {
      update: updateOf(patched),
      updateIfRevision: updateOf(patched, ' and revision = ?'),
      values: ({ members, at, revision }, before) => {
        const written = { ...before, ...members, revision };
        return [...patched.map(({ encode }) => encode(written)), at, revision];
      },
    };
  }

  return (members: Patch['members']) => {
    const names = Object.keys(members).sort();
    return cache.getOrInsertComputed(names.join(' '), () => build(names));
  };
}

/**
 * The columns of these members and the columns derived from them. The Unicode version of the keys is updated only if all
 * keys are computed again: the others may be older.
 */
function patchedColumns(
  resource: Resource,
  columns: readonly Column[],
  names: ReadonlySet<string>,
): readonly Column[] {
  const members = membersOf(resource).filter(({ name }) => names.has(name));
  if (members.length < names.size) throw new Error(`${resource.name} has no member of that name`);
  const folded = foldedMembers(resource);
  const isRefolded = folded.length > 0 && folded.every(({ name }) => names.has(name));
  const derived = new Set([
    ...folded.filter(({ name }) => names.has(name)).map(({ name }) => comparedColumn(resource, name)),
    ...(isRefolded ? [FOLDED_WITH] : []),
    ...(wordMembers(resource).some((name) => names.has(name)) ? [WORDS] : []),
    ...members.filter(({ annotation }) => annotation.hashColumn).map(({ name }) => hashColumn(name)),
    ...authenticatingColumns(resource, [...names]),
  ]);
  return columns.filter(({ name, member }) => (member === undefined ? derived.has(name) : names.has(member)));
}

/** The statements of a snapshot. */
export type Scan = 'scan' | 'scanRealm' | 'scanBelow';

/** The index of the key is in the order of realm and ID, so a scan can start at any position. */
function scansOf(
  resource: Resource,
  columns: { readonly stored: string; readonly withComputed: string },
  dialect: Dialect,
) {
  const { source, named, order, isAfter } = rowOrder(resourceTable(resource), dialect);
  const [realm, user, own] = ['realm_id', 'user_id', resource.parent ? 'id' : 'realm_id'].map(named);
  const ids = resource.parent
    ? [`${realm} as realm_id`, ...keyColumns(resource).slice(1, -1), 'id as id']
    : ['realm_id as id'];
  const isIn = `${realm} = ${resource.parent ? '?1' : dialect.id('?1')} and ${own} > ${dialect.id('?2')}`;
  const select = (more: string) => `select ${ids.join(', ')}, ${more} from ${source}`;
  const ofRealm = `where ${isIn} order by ${order} limit ?3`;
  return {
    /** Parameters: realm, ID, limit. Selects all members of the records after this position, in this order. */
    scan: `${select(columns.stored)} where ${isAfter(resource.parent ? 1 : 2)} order by ${order} limit ?3`,
    /** Like `scan`, for that realm only. */
    scanRealm: `${select(columns.stored)} ${ofRealm}`,
    /** Like `scanRealm`, with computed columns as well. */
    scanComputed: `${select(columns.withComputed)} ${ofRealm}`,
    /** Of a resource below users. Parameters: realm, the first and the last user. Selects all members of the records from one to the other. */
    scanBelow: `${select(columns.stored)} where ${realm} = ?1 and ${user} between ${dialect.id('?2')} and ${dialect.id('?3')}
      order by ${user}, created_at, ${own}`,
  };
}

/** The function that decodes a row, which becomes the record. `columns`: those whose values or names differ from their members. */
function decoding(columns: readonly Column[]): (row: Row) => AnyRecord {
  return (row) => {
    row.id = uuidText(row.id as StoredId);
    for (const { name, member = name, decode } of columns) {
      if (!(name in row)) continue;
      const value = decode ? decode(row[name] as SqlValue) : row[name];
      // An object that has lost a property is slower to read.
      if (value === undefined || name !== member) delete row[name];
      if (value !== undefined) row[member] = value;
    }
    return row as AnyRecord;
  };
}

/** Decodes a row of a scan into key and record. */
function decodeKeyed(row: Row, decode: (row: Row) => AnyRecord): KeyedRecord {
  const members: Row = {};
  // Twice as fast as a rest pattern.
  for (const name in row) if (name !== 'realm_id' && name !== 'user_id') members[name] = row[name];
  const record = decode(members);
  const above = [row.realm_id, row.user_id].filter((id) => id !== undefined) as StoredId[];
  return { key: [...above.map(uuidText), record.id] as unknown as Key, record };
}

/** The timestamps and the revision. */
function stampColumns({ returnsLongsAsText }: Dialect): readonly Column[] {
  const stamp = (name: 'created_at' | 'updated_at' | 'revision'): Column => ({
    name,
    member: name,
    isVisible: true,
    encode: (record) => record[name] as SqlValue,
  });
  const instant = (name: 'created_at' | 'updated_at'): Column =>
    returnsLongsAsText ? { ...stamp(name), decode: Number } : stamp(name);
  return [instant('created_at'), instant('updated_at'), stamp('revision')];
}

/** The column of a member. Booleans are stored as 0 and 1, lists and objects as JSON, other values unchanged. */
function memberColumns(member: Member): readonly Column[] {
  const { name, schema } = member;
  const base = { name: storedName(member), member: name, isVisible: isVisible(member) };
  const isOptional = mayBeMissing(schema);
  const { read, write }: KindStorage<unknown> = KINDS[memberKind(member)];
  const encode = (record: Patch['members']): SqlValue => {
    const value = record[name];
    if (write && !(value === undefined && isOptional)) return write(value);
    return (value ?? null) as SqlValue;
  };
  if (!isOptional) return [{ ...base, encode, ...(read ? { decode: read } : {}) }];
  const decode = (stored: SqlValue): unknown => {
    if (stored === null) return undefined;
    return read ? read(stored) : stored;
  };
  return [{ ...base, encode, decode }];
}
