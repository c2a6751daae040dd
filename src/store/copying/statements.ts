import type { LogIds } from '../dialect.ts';
import type { KeyRange, PrimaryKey } from './port.ts';
import type { CopiedTable } from './tables.ts';

/** A statement with the placeholders `?`. */
export interface SqlText {
  readonly text: string;
  readonly values: PrimaryKey;
}

/** The part of a select after its columns: the rows of a range in the order of the key. */
export function selectRange(table: CopiedTable, { after, to }: KeyRange, ids: EncodedIds): SqlText {
  const { name, key } = table;
  const columns = `(${key.join(', ')})`;
  const placeholders = `(${keyPlaceholders(table, ids).join(', ')})`;
  const conditions = [
    ...(after ? [`${columns} > ${placeholders}`] : []),
    ...(to ? [`${columns} <= ${placeholders}`] : []),
  ];
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
  return {
    text: `from ${name}${where} order by ${key.join(', ')}`,
    values: [...(after ?? []), ...(to ?? [])],
  };
}

/** The same for the last row of the page after a key. */
export function selectPageEnd(table: CopiedTable, after: PrimaryKey | undefined, ids: EncodedIds): SqlText {
  const { text, values } = selectRange(table, { after, to: undefined }, ids);
  return { text: `${text} limit 1 offset ${table.pageRows - 1}`, values };
}

type EncodedIds = Pick<LogIds, 'encoded'>;

/** A placeholder for each column of the key: keys are copied as text. */
export function keyPlaceholders({ key, idColumns }: CopiedTable, { encoded }: EncodedIds): readonly string[] {
  return key.map((column) => (idColumns?.includes(column) ? encoded('?') : '?'));
}

/** Makes an insert into a referenced table replace a row with the same key. */
export function onConflict(
  { key, columns, isReferredTo }: CopiedTable,
  derived: readonly string[] = [],
): string {
  if (!isReferredTo) return '';
  const others = [...columns.filter((column) => !key.includes(column)), ...derived];
  const assignments = others.map((column) => `${column} = excluded.${column}`).join(', ');
  return ` on conflict (${key.join(', ')}) do update set ${assignments}`;
}

export const SELECT_INSTALLATION = 'select store_id, access_version from instance';
/** Returns a row if it replaced the installation. */
export const REPLACE_INSTALLATION = `update instance set store_id = ?, access_version = ?
  where store_id = ? and access_version = ? returning store_id`;
export const SELECT_MARKER = 'select store_id from instance where store_id = ?';
