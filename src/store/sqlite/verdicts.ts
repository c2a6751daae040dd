import { SQLiteError } from 'bun:sqlite';
import type { Verdict, Write } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { parentKey, type Resource } from '../../domain/resource.ts';
import { type Prepared, runPatch, runWhole } from './prepared.ts';

export const LANDED: Verdict = Object.freeze({ kind: 'landed' });
export const ABSENT: Verdict = Object.freeze({ kind: 'absent' });
export const ID_TAKEN: Verdict = Object.freeze({ kind: 'taken', members: ['id'] });
const STALE: Verdict = Object.freeze({ kind: 'stale' });

/** Runs one write and names the rule it breaks, if it breaks one. Other engine trouble is thrown as it is. */
export function applyWrite(write: Write, of: (resource: Resource) => Prepared): Verdict {
  const statements = of(write.resource);
  try {
    if (write.op === 'patch') return applyPatch(write, statements);
    return runWhole(statements, write) === 0 ? ABSENT : LANDED;
  } catch (error) {
    return verdictOf(error, write, of);
  }
}

function applyPatch(write: Extract<Write, { op: 'patch' }>, statements: Prepared): Verdict {
  const record = runPatch(statements, write);
  if (record) return { kind: 'landed', patched: [record] };
  // One statement looks for key and revision together, so a second one tells which of them it was.
  return write.seen !== undefined && statements.select.get(...write.key) ? STALE : ABSENT;
}

/** SQLite says which columns were not unique, but not which reference was missing. */
function verdictOf(error: unknown, write: Write, of: (resource: Resource) => Prepared): Verdict {
  if (!(error instanceof SQLiteError)) throw error;
  const statements = of(write.resource);
  switch (error.code) {
    case 'SQLITE_CONSTRAINT_UNIQUE':
      // The key has an index like any other, and a record that is there twice breaks several: one of them is named.
      if (write.op === 'insert' && statements.holder.get(write.key[0], write.key.at(-1) as Uuid))
        return ID_TAKEN;
      // The engine looks at indexes before it looks for the record above; callers learn that first.
      if (lacksParent(write, of)) return ABSENT;
      return { kind: 'taken', members: uniqueMembers(error, statements) };
    case 'SQLITE_CONSTRAINT_FOREIGNKEY':
      return missing(write, of);
    default:
      throw error;
  }
}

/** What a write makes of a member; undefined where a patch leaves it. */
export function writtenOf(write: Write, member: string): unknown {
  return write.op === 'patch' ? write.patch.members[member] : write.record[member];
}

function lacksParent({ key, resource: { parent } }: Write, of: (resource: Resource) => Prepared): boolean {
  const above = parentKey(key);
  return above !== undefined && parent !== undefined && !of(parent).select.get(...above);
}

/** Looks again, on the failing path only, for what a write refers to. */
function missing(write: Write, of: (resource: Resource) => Prepared): Verdict {
  if (lacksParent(write, of)) return ABSENT;
  const lost = of(write.resource).references.find(({ member, exists }) => {
    const id = writtenOf(write, member);
    return typeof id === 'string' && !exists.get(write.key[0], id);
  });
  return { kind: 'dangling', member: lost?.member ?? 'id' };
}

/** `UNIQUE constraint failed: t.realm_id, t.issuer, t.subject` → the members behind those columns, realm aside. */
function uniqueMembers(error: SQLiteError, { texts }: Prepared): readonly string[] {
  const columns = (error.message.split(': ')[1] ?? '').split(', ').map((name) => name.split('.')[1] ?? '');
  const members = texts.uniqueMembers(columns.filter((column) => column !== 'realm_id'));
  if (!members) throw error;
  return members;
}
