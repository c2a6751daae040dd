import { assertKeyIsKnown } from '../../access/store/access.ts';
import type { Uuid } from '../../model/id.ts';
import { type AnyRecord, membersOf, parentKey, type Resource } from '../../model/resource.ts';
import { RESOURCES } from '../../model/resources.ts';
import type {
  Insert,
  Patch,
  PatchWrite,
  Replacement,
  Write,
  WriteRefusal,
  WriteResult,
} from '../../model/store.ts';
import {
  ConstraintViolation,
  execute,
  first,
  type Statement,
  tryExecuteAll,
  tryExecuteExpected,
  tryQuery,
  type Work,
} from '../../sql/transaction_work.ts';
import type { Statements } from './statements.ts';

export const WRITTEN = Object.freeze({ kind: 'written' }) satisfies WriteResult;
export const NOT_FOUND: WriteRefusal = Object.freeze({ kind: 'not_found' });
export const ID_TAKEN: WriteRefusal = Object.freeze({ kind: 'unique', members: ['id'] });
export const REVISION_MISMATCH: WriteRefusal = Object.freeze({ kind: 'revision_mismatch' });

type Of = (resource: Resource) => Statements;

/** The members of each resource that are stored encrypted. */
const SEALED_MEMBERS = new Map(
  RESOURCES.map((resource) => {
    const sealed = membersOf(resource).filter(({ annotation }) => annotation.secret === 'sealed');
    return [resource, sealed.map(({ name }) => name)] as const;
  }),
);

/**
 * The members of a write as its row stores them; a new realm gets its clock. Throws if a secret was sealed by a key that is no longer in
 * use.
 */
function* storedMembers<M extends AnyRecord | Patch['members']>(
  write: Insert | Replacement | PatchWrite,
  members: M,
  { authenticate, createClock }: Statements,
): Work<M> {
  if (write.op === 'insert' && createClock) yield* execute(createClock, write.key[0]);
  for (const name of SEALED_MEMBERS.get(write.resource) ?? []) yield* assertKeyIsKnown(members[name]);
  return authenticate ? { ...members, ...(yield* authenticate(write)) } : members;
}

/** Inserts or replaces a record. Throws ConstraintViolation. */
export function* storeRecord(
  write: Insert | Replacement,
  of: Of,
  tryWrite = tryExecuteExpected,
): Work<WriteRefusal | undefined> {
  const { op, resource, key, record } = write;
  const texts = of(resource);
  const stored = yield* storedMembers(write, record, texts);
  const count = yield* op === 'insert'
    ? tryWrite(texts.insert, texts.insertValues(key, stored))
    : tryWrite(texts.replace, [...texts.replaceValues(stored), ...key]);
  return count > 0 ? undefined : NOT_FOUND;
}

/** Inserts in their order until one violates a constraint. Returns how many records were inserted. */
export function* insertAll(inserts: readonly Insert[], of: Of, isSuccessExpected: boolean): Work<number> {
  const statements: Statement[] = [];
  for (const insert of inserts) {
    const { resource, key, record } = insert;
    const texts = of(resource);
    const stored = yield* storedMembers(insert, record, texts);
    statements.push({ text: texts.insert, values: texts.insertValues(key, stored) });
  }
  try {
    yield* tryExecuteAll(statements, isSuccessExpected);
    return inserts.length;
  } catch (error) {
    if (error instanceof ConstraintViolation) return error.writesKept;
    throw error;
  }
}

/**
 * Patches one record; `before`: as it is stored. Returns the patched record; undefined if no row has the key and the expected revision.
 * Throws ConstraintViolation.
 */
export function* patchRow(
  write: PatchWrite,
  of: Of,
  before: AnyRecord | undefined,
): Work<AnyRecord | undefined> {
  const { resource, patch, key, expectedRevision } = write;
  const texts = of(resource);
  const { update, updateIfRevision, values } = texts.patchStatements(patch.members);
  const members = yield* storedMembers(write, patch.members, texts);
  const written = [...values({ ...patch, members }, before), ...key];
  const [row] =
    expectedRevision === undefined
      ? yield* tryQuery(update, written)
      : yield* tryQuery(updateIfRevision, [...written, expectedRevision]);
  return row && texts.decode(row);
}

/** Sets only the time and revision of a record. Returns whether it exists. */
export function* touchRow({ resource, patch, key }: Omit<PatchWrite, 'op'>, of: Of): Work<boolean> {
  return (yield* tryExecuteExpected(of(resource).touch, [patch.at, patch.revision, ...key])) > 0;
}

/**
 * The refusal of a write that violated a constraint; throws other errors. Engines name the columns of a unique violation, but not the
 * reference that was missing.
 */
export function* violationRefusal(error: unknown, write: Write, of: Of): Work<WriteRefusal> {
  if (!(error instanceof ConstraintViolation)) throw error;
  const { rule, cause } = error;
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

function* lacksParent({ key, resource: { parent } }: Write, of: Of): Work<boolean> {
  const above = parentKey(key);
  return above !== undefined && parent !== undefined && !(yield* first(of(parent).select, ...above));
}

/** Finds the missing reference, after a failure only. */
function* foreignKeyResult(write: Write, of: Of): Work<WriteRefusal> {
  if (yield* lacksParent(write, of)) return NOT_FOUND;
  const written: Patch['members'] = write.op === 'patch' ? write.patch.members : write.record;
  for (const { member, exists } of of(write.resource).references) {
    const id = written[member];
    if (typeof id === 'string' && !(yield* first(exists, write.key[0], id)))
      return { kind: 'foreign_key', member };
  }
  return { kind: 'foreign_key', member: 'id' };
}
