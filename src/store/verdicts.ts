import type { Verdict, Write } from '../directory/store.ts';
import type { Uuid } from '../domain/id.ts';
import { type AnyRecord, parentKey, type Resource } from '../domain/resource.ts';
import type { Statements } from './statements.ts';
import { attempt, attemptAll, attemptRows, first, RuleBroken, type Work } from './work.ts';

export const LANDED: Verdict = Object.freeze({ kind: 'landed' });
export const ABSENT: Verdict = Object.freeze({ kind: 'absent' });
export const ID_TAKEN: Verdict = Object.freeze({ kind: 'taken', members: ['id'] });
const STALE: Verdict = Object.freeze({ kind: 'stale' });

type Of = (resource: Resource) => Statements;

/** Runs one write and names the rule it breaks, if it breaks one. Other engine trouble is thrown as it is. */
export function* applyWrite(write: Write, of: Of): Work<Verdict> {
  try {
    if (write.op === 'patch') return yield* applyPatch(write, of(write.resource));
    return (yield* runWhole(write, of(write.resource))) === 0 ? ABSENT : LANDED;
  } catch (error) {
    if (!(error instanceof RuleBroken)) throw error;
    return yield* verdictOf(error, write, of);
  }
}

/** Inserts in their order, all or none of them. Answers false where a rule refuses one, whichever. */
export function* insertAll(inserts: readonly Extract<Write, { op: 'insert' }>[], of: Of): Work<boolean> {
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

/** Writes a whole record and answers how many rows it touched. */
function runWhole({ op, key, record }: Exclude<Write, { op: 'patch' }>, texts: Statements): Work<number> {
  return op === 'insert'
    ? attempt(texts.insert, texts.insertValues(key, record))
    : attempt(texts.replace, [...texts.replaceValues(record), ...key]);
}

type PatchWrite = Extract<Write, { op: 'patch' }>;

/** Patches one record and answers what it left of it, or undefined where it found none. */
export function* runPatch({ patch, key, seen }: PatchWrite, texts: Statements): Work<AnyRecord | undefined> {
  const { update, updateSeen, values } = texts.patching(patch.members);
  const [row] =
    seen === undefined
      ? yield* attemptRows(update, [...values(patch), ...key])
      : yield* attemptRows(updateSeen, [...values(patch), ...key, seen]);
  return row && texts.decode(row);
}

function* applyPatch(write: PatchWrite, texts: Statements): Work<Verdict> {
  const record = yield* runPatch(write, texts);
  if (record) return { kind: 'landed', patched: [record] };
  // One statement looks for key and revision together, so a second one tells which of them it was.
  return write.seen !== undefined && (yield* first(texts.select, ...write.key)) ? STALE : ABSENT;
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
