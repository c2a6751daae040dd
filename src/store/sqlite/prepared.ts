import type { Database, Statement } from 'bun:sqlite';
import type { Write } from '../../directory/store.ts';
import type { AnyRecord, Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { type SqlValue, type Statements, statementsFor } from '../statements.ts';
import { slotOf, slotStatements } from './slot.ts';

type Row = Record<string, unknown>;

/** The statements of one resource, prepared on one connection. */
export interface Prepared {
  readonly texts: Statements;
  readonly select: Statement<Row, SqlValue[]>;
  readonly selectAt: Statement<Row, SqlValue[]>;
  readonly selectStored: Statement<Row, SqlValue[]>;
  readonly insert: Statement<unknown, SqlValue[]>;
  readonly replace: Statement<unknown, SqlValue[]>;
  readonly remove: Statement<unknown, SqlValue[]>;
  readonly selectHeld: Statement<
    { readonly revision: AnyRecord['revision']; readonly kept: number },
    SqlValue[]
  >;
  /** Answers a row when the realm has a record of this identifier, under whichever user. */
  readonly holder: Statement<unknown, SqlValue[]>;
  /** Answers a row when the record named by `member` is there. Parameters: realm, identifier. */
  readonly references: readonly { readonly member: string; readonly exists: Statement }[];
  /** Prepares a text that is seldom needed when it first is. */
  readonly lazily: (text: string) => Statement<Row, SqlValue[]>;
}

export function prepare(db: Database, resource: Resource): Prepared {
  const texts = statementsFor(resource, RESOURCES);
  const { insert, selectAt } = slotStatements(resource, texts);
  return {
    texts,
    select: db.prepare(texts.select),
    selectAt: db.prepare(selectAt),
    selectStored: db.prepare(texts.selectStored),
    insert: db.prepare(insert),
    replace: db.prepare(texts.replace),
    remove: db.prepare(texts.remove),
    selectHeld: db.prepare(texts.selectHeld),
    holder: db.prepare(texts.holder),
    references: texts.references.map(({ member, target }) => ({
      member,
      exists: db.prepare(`select 1 from ${target.table} where realm_id = ? and id = ?`),
    })),
    lazily: lazyStatements(db),
  };
}

/** The texts all follow from the descriptions, so that there is an end to them. */
export function lazyStatements(db: Database): Prepared['lazily'] {
  const kept = new Map<string, Statement<Row, SqlValue[]>>();
  return (text) => {
    const known = kept.get(text);
    if (known) return known;
    const statement = db.prepare<Row, SqlValue[]>(text);
    kept.set(text, statement);
    return statement;
  };
}

/** Writes a whole record and answers how many rows it touched. */
export function runWhole(
  { texts, insert, replace }: Prepared,
  write: Exclude<Write, { op: 'patch' }>,
): number {
  const { op, key, record } = write;
  return op === 'insert'
    ? insert.run(slotOf(record.id), ...texts.insertValues(key, record)).changes
    : replace.run(...texts.replaceValues(record), ...key).changes;
}

/** Patches one record and answers what it left of it, or undefined where it found none. */
export function runPatch(
  { texts, lazily }: Prepared,
  { patch, key, seen }: Extract<Write, { op: 'patch' }>,
): AnyRecord | undefined {
  const { update, updateSeen, values } = texts.patching(patch.members);
  const parameters = [...values(patch), ...key];
  // To its end, not only to its first row: some rules are looked at last.
  const [row] =
    seen === undefined ? lazily(update).all(...parameters) : lazily(updateSeen).all(...parameters, seen);
  return row && texts.decode(row);
}
