import type {
  Guard,
  Insert,
  Patch,
  PatchWrite,
  Write,
  WriteRefusal,
  WriteResult,
} from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { type AnyRecord, parentKey, type Resource } from '../../domain/resource.ts';
import {
  ConstraintViolation,
  first,
  type Statement,
  tryExecute,
  tryExecuteAll,
  tryExecuteExpected,
  tryQuery,
  type Work,
} from '../transaction_work.ts';
import type { Statements } from './statements.ts';

export const WRITTEN = Object.freeze({ kind: 'written' }) satisfies WriteResult;
export const NOT_FOUND: WriteRefusal = Object.freeze({ kind: 'not_found' });
export const ID_TAKEN: WriteRefusal = Object.freeze({ kind: 'unique', members: ['id'] });
const REVISION_MISMATCH: WriteRefusal = Object.freeze({ kind: 'revision_mismatch' });

type Of = (resource: Resource) => Statements;

/** A write in its transaction; the steps of the commit add to it. */
export interface PendingWrite {
  readonly write: Write;
  /** A bulk load often finds records that exist. */
  readonly isLoad?: boolean;
  /** The record before and after the write, for the log. */
  before?: AnyRecord | undefined;
  after?: AnyRecord | undefined;
  /** A guard that the record before the write violates. */
  violatedGuard?: Guard | undefined;
}

/** Whether a write only sets the time and revision of a parent. */
export function isTouch(write: Write): boolean {
  return write.op === 'patch' && write.isTouch === true;
}

/** Writes one row. Returns the result of a violated constraint; throws other engine errors. */
export function* writeRow(pending: PendingWrite, of: Of): Work<WriteRefusal | undefined> {
  const { write } = pending;
  const texts = of(write.resource);
  let written: AnyRecord | true | undefined;
  try {
    written = yield* runWrite(pending, texts);
  } catch (error) {
    if (!(error instanceof ConstraintViolation)) throw error;
    return yield* constraintResult(error, write, of);
  }
  if (written === true) return undefined;
  pending.after = written;
  if (written) return undefined;
  // The statement matches key and revision together; a query finds out which of them did not match.
  const hasPrecondition = write.op === 'patch' && write.expectedRevision !== undefined;
  return hasPrecondition && (yield* first(texts.select, ...write.key)) ? REVISION_MISMATCH : NOT_FOUND;
}

/** Runs the statement of a write. Returns the written record, true for a touch; undefined if no row matched. */
function* runWrite(
  { write, isLoad, before }: PendingWrite,
  texts: Statements,
): Work<AnyRecord | true | undefined> {
  const tryWrite = isLoad ? tryExecute : tryExecuteExpected;
  if (write.op === 'patch')
    return yield* write.isTouch ? runTouch(write, texts) : runPatch(write, texts, before);
  const { op, key, record } = write;
  const stored = yield* storedMembers(write, record, texts);
  const count = yield* op === 'insert'
    ? tryWrite(texts.insert, texts.insertValues(key, stored))
    : tryWrite(texts.replace, [...texts.replaceValues(stored), ...key]);
  return count > 0 ? record : undefined;
}

/** The members that a write stores, with the columns that authenticate one of them. */
function* storedMembers<M extends Patch['members']>(
  write: Write,
  members: M,
  { authenticate }: Statements,
): Work<M> {
  return authenticate ? { ...members, ...(yield* authenticate(write)) } : members;
}

/** Touches a record. Returns whether it exists. */
function* runTouch({ patch, key }: PatchWrite, texts: Statements): Work<true | undefined> {
  const { update, values } = texts.patchStatements(patch.members);
  const count = yield* tryExecuteExpected(update, [...values(patch), ...key]);
  return count > 0 || undefined;
}

/** Inserts in their order until one violates a constraint. Returns how many records were inserted. */
export function* insertAll(inserts: readonly Insert[], of: Of): Work<number> {
  const statements: Statement[] = [];
  for (const insert of inserts) {
    const texts = of(insert.resource);
    const stored = yield* storedMembers(insert, insert.record, texts);
    statements.push({ text: texts.insert, values: texts.insertValues(insert.key, stored) });
  }
  try {
    yield* tryExecuteAll(statements);
    return inserts.length;
  } catch (error) {
    if (error instanceof ConstraintViolation) return error.writesKept;
    throw error;
  }
}

/** Patches one record; `before`: as it is stored. Returns the patched record; undefined if no row matched. */
export function* runPatch(
  write: PatchWrite,
  texts: Statements,
  before?: AnyRecord,
): Work<AnyRecord | undefined> {
  const { patch, key, expectedRevision } = write;
  const { update, updateIfRevision, values } = texts.patchStatements(patch.members);
  const members = yield* storedMembers(write, patch.members, texts);
  const written = [...values({ ...patch, members }, before), ...key];
  const [row] =
    expectedRevision === undefined
      ? yield* tryQuery(update, written)
      : yield* tryQuery(updateIfRevision, [...written, expectedRevision]);
  return row && texts.decode(row);
}

/** Engines name the columns of a unique violation, but not the reference that was missing. */
function* constraintResult({ rule, cause }: ConstraintViolation, write: Write, of: Of): Work<WriteRefusal> {
  if (rule.kind === 'foreign_key') return yield* foreignKeyResult(write, of);
  const { key, resource } = write;
  // A record that exists already violates several indexes, of which the engine names only one.
  if (write.op === 'insert' && (yield* first(of(resource).selectInRealm, key[0], key.at(-1) as Uuid)))
    return ID_TAKEN;
  // Engines check indexes before foreign keys; a missing parent is reported first.
  if (yield* lacksParent(write, of)) return NOT_FOUND;
  const members = of(resource).uniqueMembers(rule.columns.filter((column) => column !== 'realm_id'));
  if (!members) throw cause;
  return { kind: 'unique', members };
}

/** The value that a write gives a member; undefined if a patch does not write it. */
export function writtenValue(write: Write, member: string): unknown {
  return write.op === 'patch' ? write.patch.members[member] : write.record[member];
}

function* lacksParent({ key, resource: { parent } }: Write, of: Of): Work<boolean> {
  const above = parentKey(key);
  return above !== undefined && parent !== undefined && !(yield* first(of(parent).select, ...above));
}

/** Finds the missing reference, after a failure only. */
function* foreignKeyResult(write: Write, of: Of): Work<WriteRefusal> {
  if (yield* lacksParent(write, of)) return NOT_FOUND;
  for (const { member, exists } of of(write.resource).references) {
    const id = writtenValue(write, member);
    if (typeof id === 'string' && !(yield* first(exists, write.key[0], id)))
      return { kind: 'foreign_key', member };
  }
  return { kind: 'foreign_key', member: 'id' };
}
