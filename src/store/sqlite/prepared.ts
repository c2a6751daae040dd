import type { Database, Statement } from 'bun:sqlite';
import type { Write } from '../../directory/store.ts';
import type { Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { type SqlValue, type Statements, statementsFor } from '../statements.ts';
import { slotOf, slotStatements } from './slot.ts';

/** The statements of one resource, prepared on one connection. */
export interface Prepared {
  readonly texts: Statements;
  readonly select: Statement<Record<string, unknown>, SqlValue[]>;
  readonly selectAt: Statement<Record<string, unknown>, SqlValue[]>;
  readonly selectStored: Statement<Record<string, unknown>, SqlValue[]>;
  readonly insert: Statement<unknown, SqlValue[]>;
  readonly update: Statement<unknown, SqlValue[]>;
  readonly updateSeen: Statement<unknown, SqlValue[]>;
  readonly remove: Statement<unknown, SqlValue[]>;
  /** Answers a row when the realm has a record of this identifier, under whichever user. */
  readonly holder: Statement<unknown, SqlValue[]>;
  /** Answers a row when the record named by `member` is there. Parameters: realm, identifier. */
  readonly references: readonly { readonly member: string; readonly exists: Statement }[];
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
    update: db.prepare(texts.update),
    updateSeen: db.prepare(texts.updateSeen),
    remove: db.prepare(texts.remove),
    holder: db.prepare(texts.holder),
    references: texts.references.map(({ member, table }) => ({
      member,
      exists: db.prepare(`select 1 from ${table} where realm_id = ? and id = ?`),
    })),
  };
}

/** Runs one write and answers how many rows it touched. */
export function runWrite(statements: Prepared, write: Write): number {
  const { texts } = statements;
  switch (write.op) {
    case 'insert':
      return statements.insert.run(slotOf(write.record.id), ...texts.insertValues(write.key, write.record))
        .changes;
    case 'delete':
      return statements.remove.run(...write.key).changes;
    case 'update': {
      const values = [...texts.updateValues(write.record), ...write.key];
      return write.seen === undefined
        ? statements.update.run(...values).changes
        : statements.updateSeen.run(...values, write.seen).changes;
    }
  }
}
