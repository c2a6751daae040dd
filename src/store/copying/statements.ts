import type { KeyRange, PrimaryKey } from './port.ts';
import type { CopiedTable } from './tables.ts';

/** A statement whose places are `?`. */
export interface SqlText {
  readonly text: string;
  readonly values: PrimaryKey;
}

/** The rows of a range in the order of the key: what stands behind the columns of a select. */
export function selectRange({ name, key }: CopiedTable, { after, to }: KeyRange): SqlText {
  const columns = `(${key.join(', ')})`;
  const places = `(${key.map(() => '?').join(', ')})`;
  const conditions = [
    ...(after ? [`${columns} > ${places}`] : []),
    ...(to ? [`${columns} <= ${places}`] : []),
  ];
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
  return {
    text: `from ${name}${where} order by ${key.join(', ')}`,
    values: [...(after ?? []), ...(to ?? [])],
  };
}

/** The last row of the page behind a key. */
export function selectPageEnd(table: CopiedTable, after: PrimaryKey | undefined): SqlText {
  const { text, values } = selectRange(table, { after, to: undefined });
  return { text: `${text} limit 1 offset ${table.pageRows - 1}`, values };
}

/** What an insert does where the key is there: it replaces the row, if that is wanted. */
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
/** Answers a row where it was done. */
export const REPLACE_INSTALLATION = `update instance set store_id = ?, access_version = ?
  where store_id = ? and access_version = ? returning store_id`;
export const SELECT_MARK = 'select store_id from instance where store_id = ?';
