import type { Guard, Insert, PatchWrite, Verdict, Write } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { type AnyRecord, parentKey, type Resource } from '../../domain/resource.ts';
import { attempt, attemptAll, attemptRows, first, RuleBroken, type Work } from '../work.ts';
import type { Statements } from './statements.ts';

export const LANDED: Verdict = Object.freeze({ kind: 'landed' });
export const ABSENT: Verdict = Object.freeze({ kind: 'absent' });
export const ID_TAKEN: Verdict = Object.freeze({ kind: 'taken', members: ['id'] });
const STALE: Verdict = Object.freeze({ kind: 'stale' });

type Of = (resource: Resource) => Statements;

/** A write in its transaction, which gains what its steps find and make. */
export interface Writing {
  readonly write: Write;
  /** Whether any record is being removed by several commits. */
  readonly isPurging: boolean;
  /** The record before the write and after it, as far as the log reports it. */
  before?: AnyRecord | undefined;
  after?: AnyRecord | undefined;
  /** The guard that the record as it was before does not let through. */
  broken?: Guard | undefined;
}

/** Writes one row, or answers which rule it breaks. Other engine errors are thrown as they are. */
export function* writeRow(writing: Writing, of: Of): Work<Verdict | undefined> {
  const { write } = writing;
  const texts = of(write.resource);
  try {
    writing.after = yield* runWrite(write, texts);
  } catch (error) {
    if (!(error instanceof RuleBroken)) throw error;
    return yield* verdictOf(error, write, of);
  }
  if (writing.after) return undefined;
  // One statement looks for key and revision together, so a second one tells which of them it was.
  const isSeen = write.op === 'patch' && write.seen !== undefined;
  return isSeen && (yield* first(texts.select, ...write.key)) ? STALE : ABSENT;
}

/** Runs the statement of a write and answers the record it left, or undefined where it found none. */
function* runWrite(write: Write, texts: Statements): Work<AnyRecord | undefined> {
  if (write.op === 'patch') return yield* runPatch(write, texts);
  const { op, key, record } = write;
  const count = yield* op === 'insert'
    ? attempt(texts.insert, texts.insertValues(key, record))
    : attempt(texts.replace, [...texts.replaceValues(record), ...key]);
  return count > 0 ? record : undefined;
}

/** Inserts in their order, all or none of them. Answers false where a rule refuses one, whichever. */
export function* insertAll(inserts: readonly Insert[], of: Of): Work<boolean> {
  try {
    yield* attemptAll(
      inserts.map(({ resource, key, record }) => {
        const { insert, insertValues } = of(resource);
        return { text: insert, values: insertValues(key, record) };
      }),
    );
    return true;
  } catch (error) {
    if (error instanceof RuleBroken) return false;
    throw error;
  }
}

/** Patches one record and answers what it left of it, or undefined where it found none. */
export function* runPatch({ patch, key, seen }: PatchWrite, texts: Statements): Work<AnyRecord | undefined> {
  const { update, updateSeen, values } = texts.patching(patch.members);
  const [row] =
    seen === undefined
      ? yield* attemptRows(update, [...values(patch), ...key])
      : yield* attemptRows(updateSeen, [...values(patch), ...key, seen]);
  return row && texts.decode(row);
}

/** Engines say which columns were not unique, but not which reference was missing. */
function* verdictOf({ rule, cause }: RuleBroken, write: Write, of: Of): Work<Verdict> {
  if (rule.kind === 'reference') return yield* missing(write, of);
  const { key, resource } = write;
  // The key has an index like any other, and a record that is there twice breaks several: one of them is named.
  if (write.op === 'insert' && (yield* first(of(resource).holder, key[0], key.at(-1) as Uuid)))
    return ID_TAKEN;
  // Engines look at indexes before they look for the record above; callers learn that first.
  if (yield* lacksParent(write, of)) return ABSENT;
  const members = of(resource).uniqueMembers(rule.columns.filter((column) => column !== 'realm_id'));
  if (!members) throw cause;
  return { kind: 'taken', members };
}

/** What a write makes of a member; undefined where a patch leaves it. */
export function writtenOf(write: Write, member: string): unknown {
  return write.op === 'patch' ? write.patch.members[member] : write.record[member];
}

function* lacksParent({ key, resource: { parent } }: Write, of: Of): Work<boolean> {
  const above = parentKey(key);
  return above !== undefined && parent !== undefined && !(yield* first(of(parent).select, ...above));
}

/** Looks again, on the failing path only, for what a write refers to. */
function* missing(write: Write, of: Of): Work<Verdict> {
  if (yield* lacksParent(write, of)) return ABSENT;
  for (const { member, exists } of of(write.resource).references) {
    const id = writtenOf(write, member);
    if (typeof id === 'string' && !(yield* first(exists, write.key[0], id)))
      return { kind: 'dangling', member };
  }
  return { kind: 'dangling', member: 'id' };
}
