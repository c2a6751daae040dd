import type { Guard, Write, WriteResult } from '../../directory/store.ts';
import { keyColumns, type Resource, referenced } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { first, type Work } from '../work.ts';
import { isReferredTo } from './cascade.ts';
import type { SqlValue, Statements } from './statements.ts';
import type { PendingWrite } from './verdicts.ts';

/** Checks the guards of a write in its transaction. */
export interface Guards {
  /** Adds the one that is broken of those that compare with the record before the write. */
  compareWithBefore(writing: PendingWrite): Work<undefined>;
  /** Refuses for that one, or for one that looks at the record as it now is and at the one it refers to. */
  check(writing: PendingWrite): Work<WriteResult | undefined>;
}

/** A text that answers a row where the guard does not hold, and what it takes beside the key. */
interface GuardQuery {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

export function openGuards(of: (resource: Resource) => Statements): Guards {
  function columnOf(resource: Resource, member: string): string {
    return of(resource).columnOf(member).name;
  }

  /** Undefined where the guard is not looked at now. */
  function queryBefore(write: Write, guard: Guard): GuardQuery | undefined {
    if (guard.kind !== 'settled' || write.op !== 'patch') return undefined;
    if (!(guard.member in write.patch.members)) return undefined;
    const { name, encode } = of(write.resource).columnOf(guard.member);
    const text = `select 1 from ${write.resource.table} t where ${whereKey(write.resource)}
      and ${isReferredTo(write.resource, RESOURCES)} and t.${name} is distinct from ?`;
    return { text, values: [encode(write.patch.members[guard.member])] };
  }

  function queryAfter({ resource }: Write, guard: Guard): GuardQuery | undefined {
    if (guard.kind === 'settled') return undefined;
    const name = guard.kind === 'unless' ? guard.saying.reference : guard.reference;
    const target = referenced(resource, name, RESOURCES);
    const joined = `select 1 from ${resource.table} t
      join ${target.table} r on r.realm_id = t.realm_id and r.id = t.${columnOf(resource, name)}
      where ${whereKey(resource)}`;
    if (guard.kind === 'unless') {
      const text = `${joined} and r.${columnOf(target, guard.saying.member)} = ?`;
      return { text, values: [guard.saying.is] };
    }
    const own = columnOf(resource, guard.member);
    return { text: `${joined} and r.${columnOf(target, guard.of)} is distinct from t.${own}`, values: [] };
  }

  function* firstViolated(write: Write, ask: typeof queryAfter): Work<Guard | undefined> {
    for (const guard of (write.op === 'replace' ? undefined : write.guards) ?? []) {
      const question = ask(write, guard);
      if (question && (yield* first(question.text, ...write.key, ...question.values))) return guard;
    }
    return undefined;
  }

  return {
    *compareWithBefore(writing) {
      writing.violatedGuard = yield* firstViolated(writing.write, queryBefore);
      return undefined;
    },
    // Told last: a caller learns first that a record is missing, taken or of another revision.
    *check({ write, violatedGuard: broken }) {
      const guard = broken ?? (yield* firstViolated(write, queryAfter));
      return guard && { kind: 'guard', guard };
    },
  };
}

function whereKey(resource: Resource): string {
  return keyColumns(resource)
    .map((column) => `t.${column} = ?`)
    .join(' and ');
}
