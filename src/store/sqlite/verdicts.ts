import { SQLiteError } from 'bun:sqlite';
import type { Verdict, Write } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import { parentKey, type Resource } from '../../domain/resource.ts';
import { type Prepared, runWrite } from './prepared.ts';

export const LANDED: Verdict = Object.freeze({ kind: 'landed' });
export const ABSENT: Verdict = Object.freeze({ kind: 'absent' });
export const ID_TAKEN: Verdict = Object.freeze({ kind: 'taken', members: ['id'] });

/** Runs one write and names the rule it breaks, if it breaks one. Other engine trouble is thrown as it is. */
export function applyWrite(write: Write, of: (resource: Resource) => Prepared): Verdict {
  try {
    return runWrite(of(write.resource), write) === 0 ? ABSENT : LANDED;
  } catch (error) {
    return verdictOf(error, write, of);
  }
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
      return { kind: 'taken', members: uniqueMembers(error, statements) };
    case 'SQLITE_CONSTRAINT_FOREIGNKEY':
      return write.op === 'delete' ? { kind: 'dangling', member: 'id' } : missing(write, of);
    default:
      throw error;
  }
}

/** Looks again, on the failing path only, for what a write refers to. */
function missing(write: Exclude<Write, { op: 'delete' }>, of: (resource: Resource) => Prepared): Verdict {
  const above = parentKey(write.key);
  const { parent } = write.resource;
  if (above && parent && !of(parent).select.get(...above)) return ABSENT;
  const lost = of(write.resource).references.find(
    ({ member, exists }) => !exists.get(write.key[0], write.record[member] as string),
  );
  return { kind: 'dangling', member: lost?.member ?? 'id' };
}

/** `UNIQUE constraint failed: t.realm_id, t.issuer, t.subject` → the members behind those columns, realm aside. */
function uniqueMembers(error: SQLiteError, { texts }: Prepared): readonly string[] {
  const columns = (error.message.split(': ')[1] ?? '').split(', ').map((name) => name.split('.')[1] ?? '');
  const members = texts.uniqueMembers(columns.filter((column) => column !== 'realm_id'));
  if (!members) throw error;
  return members;
}
