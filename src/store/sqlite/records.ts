import { type Database, SQLiteError, type Statement } from 'bun:sqlite';
import type { Load, Loader, LoadOutcome, Store, Verdict, Write } from '../../directory/store.ts';
import type { Change, SequencedChange } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import { type AnyRecord, type Key, parentKey, type RecordOf, type Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { type SqlValue, type Statements, statementsFor } from '../statements.ts';
import { read } from './connection.ts';
import type { Outcome, Writer } from './writer.ts';

/** The statements of one resource, prepared on one connection. */
interface Prepared {
  readonly texts: Statements;
  readonly select: Statement<Record<string, unknown>, SqlValue[]>;
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

const LANDED: Verdict = Object.freeze({ kind: 'landed' });
const ABSENT: Verdict = Object.freeze({ kind: 'absent' });
const ID_TAKEN: Verdict = Object.freeze({ kind: 'taken', members: ['id'] });

/** Records and their changes in one SQLite file. */
export function openRecords(db: Database, writer: Writer): Store & Loader {
  const prepared = new Map(RESOURCES.map((resource) => [resource, prepare(db, resource)]));
  const selectChanges = db.prepare<ChangeRow, [string, number, number]>(
    'select * from change where realm_id = ? and seq > ? order by seq limit ?',
  );
  const probe = db.prepare('select store_id from instance');

  function of(resource: Resource): Prepared {
    const found = prepared.get(resource);
    if (!found) throw new Error(`${resource.name} has no table`);
    return found;
  }

  function apply(write: Write): Verdict {
    const statements = of(write.resource);
    try {
      return run(statements, write) === 0 ? ABSENT : LANDED;
    } catch (error) {
      return verdictOf(error, write, statements);
    }
  }

  /** Names the broken rule. SQLite says which columns were not unique, but not which reference was missing. */
  function verdictOf(error: unknown, write: Write, statements: Prepared): Verdict {
    if (!(error instanceof SQLiteError)) throw error;
    switch (error.code) {
      case 'SQLITE_CONSTRAINT_PRIMARYKEY':
        return ID_TAKEN;
      case 'SQLITE_CONSTRAINT_UNIQUE':
        // A record that is there twice breaks several rules; the engine names whichever index it met first.
        if (write.op === 'insert' && statements.holder.get(write.key[0], write.key.at(-1) as Uuid))
          return ID_TAKEN;
        return { kind: 'taken', members: uniqueMembers(error, statements) };
      case 'SQLITE_CONSTRAINT_FOREIGNKEY':
        return write.op === 'delete' ? { kind: 'dangling', member: 'id' } : missing(write, statements);
      default:
        throw error;
    }
  }

  function missing(write: Exclude<Write, { op: 'delete' }>, statements: Prepared): Verdict {
    const above = parentKey(write.key);
    const { parent } = write.resource;
    if (above && parent && !of(parent).select.get(...above)) return ABSENT;
    const lost = statements.references.find(
      ({ member, exists }) => !exists.get(write.key[0], write.record[member] as string),
    );
    return { kind: 'dangling', member: lost?.member ?? 'id' };
  }

  function loadOne({ write, judge }: Load): { outcome: LoadOutcome; change?: Change } {
    const verdict = apply(write);
    if (verdict !== ID_TAKEN) return { outcome: verdict };
    const statements = of(write.resource);
    const row = statements.selectStored.get(...write.key);
    // The identifier is taken, but by a record under another user.
    if (!row) return { outcome: verdict };
    const { judgement, change } = judge(statements.texts.decode(row));
    if (judgement === 'same') return { outcome: { kind: 'same' } };
    if (judgement === 'refuse') return { outcome: { kind: 'differs' } };
    const replaced = apply({ ...write, op: 'update' });
    return replaced.kind === 'landed' ? { outcome: { kind: 'replaced' }, change } : { outcome: replaced };
  }

  function loadAll(loads: readonly Load[], stopAtFirst: boolean): Outcome<LoadOutcome[]> {
    const value: LoadOutcome[] = [];
    const changes: Change[] = [];
    for (const load of loads) {
      const { outcome, change } = loadOne(load);
      value.push(outcome);
      if (outcome.kind === 'landed') changes.push(load.change);
      else if (change) changes.push(change);
      else if (stopAtFirst && outcome.kind !== 'same') break;
    }
    return { value, keep: true, changes };
  }

  return {
    get<R extends Resource>(resource: R, key: Key) {
      const { select, texts } = of(resource);
      return read(() => {
        const row = select.get(...key);
        return row ? (texts.decode(row) as unknown as RecordOf<R>) : undefined;
      });
    },
    commit: (writes, changes) =>
      writer.write(() => {
        for (const write of writes) {
          const verdict = apply(write);
          if (verdict.kind !== 'landed') return { value: verdict, keep: false };
        }
        return { value: LANDED, keep: true, changes };
      }),
    load: (loads, stopAtFirst) => writer.write(() => loadAll(loads, stopAtFirst)),
    changes: (realm, after, limit) => read(() => selectChanges.all(realm, after, limit).map(changeOfRow)),
    ready: () =>
      read(() => {
        probe.get();
      }),
  };
}

function prepare(db: Database, resource: Resource): Prepared {
  const texts = statementsFor(resource, RESOURCES);
  return {
    texts,
    select: db.prepare(texts.select),
    selectStored: db.prepare(texts.selectStored),
    insert: db.prepare(texts.insert),
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
function run(statements: Prepared, write: Write): number {
  const { texts } = statements;
  switch (write.op) {
    case 'insert':
      return statements.insert.run(...texts.insertValues(write.key, write.record)).changes;
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

/** `UNIQUE constraint failed: t.realm_id, t.issuer, t.subject` → the members behind those columns, realm aside. */
function uniqueMembers(error: SQLiteError, { texts }: Prepared): readonly string[] {
  const columns = (error.message.split(': ')[1] ?? '').split(', ').map((name) => name.split('.')[1] ?? '');
  const members = texts.uniqueMembers(columns.filter((column) => column !== 'realm_id'));
  if (!members) throw error;
  return members;
}

interface ChangeRow {
  readonly realm_id: string;
  readonly seq: number;
  readonly event: string;
  readonly user_id: string | null;
  readonly record_id: string;
  readonly revision: string;
  readonly members: string;
  readonly actor: string;
  readonly request_id: string | null;
  readonly at: number;
}

function changeOfRow(row: ChangeRow): SequencedChange {
  return {
    event: row.event,
    realm: row.realm_id as Uuid,
    user: (row.user_id ?? undefined) as Uuid | undefined,
    id: row.record_id as Uuid,
    revision: row.revision as AnyRecord['revision'],
    members: row.members === '' ? [] : row.members.split(' '),
    actor: row.actor,
    requestId: row.request_id ?? undefined,
    at: row.at,
    seq: row.seq,
  };
}
